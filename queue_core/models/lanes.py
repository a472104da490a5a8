from datetime import timedelta

from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from queue_core.states import DeadlineKind, Exposure, SourceKind

MAX_CAP = 10_000
SEVERITIES = (0, 1, 2, 3)

name_validator = RegexValidator(
    r"\A[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?\Z",
    _("Use 1 to 64 lower-case letters, digits and hyphens; begin and end with a letter or digit."),
)


class ModelConnection(models.Model):
    """The adapter to a model, with its address and limits. A key is named here, never stored: `key_env` says where."""

    name = models.CharField(_("name"), max_length=64, unique=True, validators=[name_validator])
    kind = models.CharField(
        _("kind"), max_length=64, help_text=_("Which adapter speaks to the model, for example local.")
    )
    address = models.CharField(_("address"), max_length=500, blank=True, default="")
    model = models.CharField(_("model"), max_length=200, blank=True, default="")
    key_env = models.CharField(
        _("key's environment variable"),
        max_length=100,
        blank=True,
        default="",
        help_text=_("The name of the environment variable that holds the key. The key itself is never stored."),
    )
    call_time_limit = models.DurationField(_("call time limit"), default=timedelta(seconds=10))
    total_cap = models.PositiveIntegerField(
        _("total cap"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(MAX_CAP)],
        help_text=_("The most calls at once over all lanes of this connection. Empty: no limit of its own."),
    )
    allow_restricted = models.BooleanField(_("may receive restricted evidence"), default=False)
    options = models.JSONField(_("options"), default=dict, blank=True)
    health_checked_at = models.DateTimeField(_("health checked at"), null=True, blank=True, editable=False)
    health_is_good = models.BooleanField(_("health is good"), null=True, blank=True, editable=False)
    health_detail = models.CharField(_("health detail"), max_length=512, blank=True, default="", editable=False)
    health_since = models.DateTimeField(_("health since"), null=True, blank=True, editable=False)
    version = models.PositiveIntegerField(default=1, editable=False)

    class Meta:
        verbose_name = _("model connection")
        verbose_name_plural = _("model connections")
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(
                condition=Q(call_time_limit__gt=timedelta(0)) & Q(call_time_limit__lte=timedelta(minutes=30)),
                name="connection_call_time_limit_in_bounds",
                violation_error_message=_("The call time limit is between 0 and 30 minutes."),
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Lane(models.Model):
    """A separate stream of jobs.

    The first half is configuration, edited in the admin. The second half is written by `ramp` alone, under this row's
    lock, which is also the lock under which a claim counts running leases.
    """

    name = models.CharField(_("name"), max_length=64, unique=True, validators=[name_validator])
    title = models.CharField(_("title"), max_length=120, blank=True, default="")
    connection = models.ForeignKey(
        ModelConnection, models.PROTECT, related_name="lanes", verbose_name=_("model connection")
    )
    lease = models.DurationField(_("lease"), default=timedelta(seconds=30))
    max_hold = models.DurationField(
        _("longest lease with renewals"),
        null=True,
        blank=True,
        help_text=_("Empty: three times the connection's call time limit."),
    )
    max_attempts = models.PositiveSmallIntegerField(
        _("attempts"), default=3, validators=[MinValueValidator(1), MaxValueValidator(1000)]
    )
    drainers = models.PositiveSmallIntegerField(
        _("drainers"),
        default=2,
        validators=[MinValueValidator(1), MaxValueValidator(64)],
        help_text=_("The most worker tasks that drain this lane at once."),
    )
    backoff_base = models.DurationField(_("first back-off"), default=timedelta(seconds=5))
    backoff_cap = models.DurationField(_("longest back-off"), default=timedelta(minutes=5))
    unavailable_limit = models.PositiveSmallIntegerField(
        _("unavailable answers in a row"),
        default=5,
        validators=[MinValueValidator(1), MaxValueValidator(1000)],
        help_text=_("So many unavailable or overloaded answers running put the lane on hold."),
    )
    retry_after_limit = models.DurationField(
        _("longest retry-after"),
        default=timedelta(minutes=15),
        help_text=_("A model that asks for more than this is overloaded beyond tolerance: the lane goes on hold."),
    )
    urgency_weight = models.FloatField(
        _("urgency weight"),
        default=0.5,
        validators=[MinValueValidator(0.0), MaxValueValidator(1.0)],
        help_text=_("0 is oldest first, 1 is nearest deadline first."),
    )
    severity_bonus = models.DurationField(
        _("bonus for severity"),
        default=timedelta(minutes=10),
        help_text=_("A ticket counts as this much more urgent for each step of severity."),
    )
    least_call_time = models.DurationField(_("least usual call time"), default=timedelta(seconds=1))
    wait_target = models.DurationField(_("target for the oldest wait"), default=timedelta(minutes=15))
    desk_items_per_hour = models.PositiveIntegerField(_("items people clear in an hour"), default=60)
    assignment_time = models.DurationField(_("time for one item"), default=timedelta(minutes=10))
    most_held = models.PositiveSmallIntegerField(
        _("items a person may hold"),
        default=5,
        db_default=5,
        validators=[MinValueValidator(1), MaxValueValidator(100)],
        help_text=_("Whoever holds so many items already, of any lane, takes none of this one."),
    )
    second_look_share = models.FloatField(
        _("share looked at twice"),
        default=0.0,
        db_default=0.0,
        validators=[MinValueValidator(0.0), MaxValueValidator(1.0)],
        help_text=_("Of people's decisions, drawn by chance: 0.1 is one in ten. Another person decides anew, unseen."),
    )
    deadline_default = models.DurationField(_("deadline when none is sent"), default=timedelta(hours=24))
    severity_default = models.PositiveSmallIntegerField(
        _("severity when none is sent"), default=1, validators=[MaxValueValidator(3)]
    )
    source_kind_default = models.CharField(
        _("source kind when none is sent"), max_length=20, choices=SourceKind, default=SourceKind.OWN_DETECTION
    )
    exposure_default = models.CharField(
        _("exposure when none is sent"), max_length=10, choices=Exposure, default=Exposure.HIDDEN
    )
    deadline_kind_default = models.CharField(
        _("deadline kind when none is sent"), max_length=10, choices=DeadlineKind, default=DeadlineKind.SERVICE
    )
    model_sees_urgent_first = models.BooleanField(
        _("the model sees urgent tickets first"),
        default=False,
        help_text=_("Otherwise severity 3 and authority orders go to people at intake and never wait for a ramp."),
    )
    two_person_rule = models.BooleanField(
        _("two persons raise a stage"),
        default=False,
        help_text=_("The person who raises a stage must be another than the one who raised the stage before."),
    )
    version = models.PositiveIntegerField(default=1, editable=False)

    policy = models.ForeignKey(
        "queue_core.Policy", models.PROTECT, null=True, related_name="+", editable=False, verbose_name=_("policy")
    )
    run = models.OneToOneField(
        "queue_core.StageRun", models.PROTECT, null=True, related_name="+", editable=False, verbose_name=_("stage run")
    )
    hold = models.OneToOneField(
        "queue_core.Hold", models.PROTECT, null=True, related_name="+", editable=False, verbose_name=_("hold")
    )
    cap = models.PositiveIntegerField(
        _("cap"), null=True, editable=False, help_text=_("The running stage's cap, or less where a lead lowered it.")
    )
    judged_at = models.DateTimeField(null=True, editable=False)
    usual_call_time = models.DurationField(
        null=True, editable=False, help_text=_("p95 of the calls in the last window, kept by whoever judges.")
    )
    claims_not_before = models.DateTimeField(null=True, editable=False)

    class Meta:
        verbose_name = _("lane")
        verbose_name_plural = _("lanes")
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(condition=Q(lease__gt=timedelta(0)), name="lane_lease_positive"),
            models.CheckConstraint(condition=Q(max_attempts__gte=1), name="lane_max_attempts_at_least_one"),
            models.CheckConstraint(condition=Q(drainers__gte=1), name="lane_drainers_at_least_one"),
            models.CheckConstraint(
                condition=Q(urgency_weight__gte=0.0) & Q(urgency_weight__lte=1.0), name="lane_urgency_weight_in_0_to_1"
            ),
            models.CheckConstraint(condition=Q(severity_default__lte=3), name="lane_severity_default_in_0_to_3"),
            models.CheckConstraint(
                condition=Q(deadline_default__gt=timedelta(0)),
                name="lane_deadline_default_positive",
                violation_error_message=_("The deadline when none is sent lies after the ticket's arrival."),
            ),
            models.CheckConstraint(
                condition=Q(backoff_base__gt=timedelta(0)) & Q(backoff_cap__gte=F("backoff_base")),
                name="lane_backoff_in_order",
                violation_error_message=_("The longest back-off is at least the first."),
            ),
            models.CheckConstraint(
                condition=(Q(run__isnull=False) & Q(hold__isnull=True) & Q(cap__isnull=False) & Q(cap__gte=1))
                | (Q(run__isnull=True) & Q(cap__isnull=True)),
                name="lane_runs_a_stage_or_is_on_hold",
            ),
        ]
        permissions = [
            ("view_board", _("May see the board, lanes and jobs")),
            ("view_evidence", _("May read evidence")),
            ("decide_item", _("May take and decide items")),
            ("requeue_item", _("May requeue DEAD jobs")),
            ("pull_job", _("May take waiting jobs out of the machine's hands")),
            ("hold_lane", _("May put a lane on hold")),
            ("raise_stage", _("May raise, resume and step down stages")),
            ("override_guardrail", _("May raise past an unmet soak or guardrail, with a reason")),
            ("force_policy", _("May put a policy into force")),
            ("move_deadlines", _("May move service deadlines")),
            ("manage_outage", _("May open, keep and close the record of an outage")),
            ("recall_decision", _("May recall decisions of the model")),
            ("view_restricted", _("May see restricted evidence, for a stated purpose")),
            ("report_evidence", _("May report restricted evidence to an authority")),
            ("preserve_evidence", _("May place and lift preservation holds")),
            ("erase_evidence", _("May erase content on a stated ground")),
        ]

    def __str__(self) -> str:
        return self.title or self.name

    @property
    def is_on_hold(self) -> bool:
        return self.run_id is None


class Stage(models.Model):
    """One step of a lane's plan. Editing it never lifts a live cap: a run is a snapshot of it."""

    lane = models.ForeignKey(Lane, models.CASCADE, related_name="stages", verbose_name=_("lane"))
    number = models.PositiveSmallIntegerField(_("number"), validators=[MinValueValidator(1), MaxValueValidator(20)])
    name = models.CharField(_("name"), max_length=60)
    cap = models.PositiveIntegerField(
        _("cap"),
        validators=[MinValueValidator(1), MaxValueValidator(MAX_CAP)],
        help_text=_("Running leases at once."),
    )
    rate = models.PositiveIntegerField(
        _("claims per minute"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text=_("The most claims in any sliding 60 seconds. Empty: no limit."),
    )
    soak_completions = models.PositiveIntegerField(_("soak: completions"), default=20)
    soak_time = models.DurationField(_("soak: time"), default=timedelta(minutes=5))
    window = models.DurationField(
        _("guardrail window"), default=timedelta(minutes=5), help_text=_("Guardrails judge attempts ended in it.")
    )
    least_sample = models.PositiveIntegerField(
        _("least sample"), default=20, help_text=_("Fewer ended attempts than this are inconclusive, never good.")
    )
    max_error_ratio = models.FloatField(
        _("most errors"), default=0.1, validators=[MinValueValidator(0.0), MaxValueValidator(1.0)]
    )
    max_timeout_ratio = models.FloatField(
        _("most timeouts"), default=0.1, validators=[MinValueValidator(0.0), MaxValueValidator(1.0)]
    )
    max_stale_ratio = models.FloatField(
        _("most stale answers"), default=0.1, validators=[MinValueValidator(0.0), MaxValueValidator(1.0)]
    )
    max_latency = models.DurationField(
        _("slowest usual call (p95)"), null=True, blank=True, help_text=_("Empty: not judged.")
    )
    keeps_back = models.BooleanField(
        _("keeps decisions back"),
        default=False,
        help_text=_("Decisions are committed but not delivered until the run is accepted by raising."),
    )
    max_share_shift = models.FloatField(
        _("most shift of a result's share"),
        null=True,
        blank=True,
        validators=[MinValueValidator(0.01), MaxValueValidator(1.0)],
        help_text=_(
            "How far the shares of APPROVED, REJECTED and MANUAL may lie from the lane's usual ones for this time of "
            "the week, for example 0.2. Empty: 0.3 where the lane has usual shares when the stage starts. 1: anything."
        ),
    )
    max_wrong_ratio = models.FloatField(
        _("most wrong known answers"),
        null=True,
        blank=True,
        validators=[MinValueValidator(0.0), MaxValueValidator(1.0)],
        help_text=_(
            "A larger share of wrong results than this puts the lane on hold. Empty: 0.2 where the lane has known "
            "answers when the stage starts. 1: they are sent, and however many are wrong nothing follows."
        ),
    )
    known_every = models.DurationField(
        _("known answers are sent every"),
        default=timedelta(minutes=10),
        db_default=timedelta(minutes=10),
        help_text=_("At the stage's start, and again after so long."),
    )
    blind_share = models.FloatField(
        _("share checked blind"),
        default=0.0,
        db_default=0.0,
        validators=[MinValueValidator(0.0), MaxValueValidator(1.0)],
        help_text=_("So many of the model's decisions become items for people who do not see them. 0: none."),
    )
    least_blind = models.PositiveIntegerField(
        _("least blind checks"),
        default=10,
        db_default=10,
        help_text=_("Fewer checks than this are inconclusive, never good."),
    )
    max_disagreement = models.FloatField(
        _("most disagreement"),
        null=True,
        blank=True,
        validators=[MinValueValidator(0.0), MaxValueValidator(1.0)],
        help_text=_(
            "The largest share of blind checks in which people may have decided otherwise, from 0 to 1: 0.2 is one in "
            "five. Empty: not judged."
        ),
    )

    class Meta:
        verbose_name = _("stage")
        verbose_name_plural = _("stages")
        ordering = ["lane", "number"]
        constraints = [
            models.UniqueConstraint(fields=["lane", "number"], name="stage_number_once_a_lane"),
            models.CheckConstraint(condition=Q(cap__gte=1), name="stage_cap_at_least_one"),
            models.CheckConstraint(condition=Q(window__gt=timedelta(0)), name="stage_window_positive"),
            models.CheckConstraint(
                condition=Q(known_every__gte=timedelta(minutes=1)),
                name="stage_known_every_a_minute_at_least",
                violation_error_message=_("Known answers are sent once a minute at most."),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.number} {self.name}"


class Drainer(models.Model):
    """One place for a task that drains a lane. Held until `until`, so that a dead task frees it by itself.

    `is_alone` marks the task that took over a job whose last lease expired: nothing else runs in its process.
    """

    lane = models.ForeignKey(Lane, models.CASCADE, related_name="drainer_places")
    place = models.PositiveSmallIntegerField()
    task = models.CharField(max_length=64)
    worker = models.CharField(max_length=200)
    is_alone = models.BooleanField(default=False)
    taken_at = models.DateTimeField()
    until = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["lane", "place"], name="drainer_place_once_a_lane")]

    def __str__(self) -> str:
        return f"{self.lane_id}/{self.place}"


class Presence(models.Model):
    """Who was last seen working. For showing only: leases alone decide what is held (PGQ-05)."""

    class Kind(models.TextChoices):
        WORKER = "worker", _("worker")
        SCHEDULER = "scheduler", _("scheduler")

    kind = models.CharField(max_length=10, choices=Kind)
    name = models.CharField(max_length=200)
    started_at = models.DateTimeField()
    seen_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["kind", "name"], name="presence_once")]

    def __str__(self) -> str:
        return self.name

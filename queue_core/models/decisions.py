from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from queue_core.models.lanes import Lane
from queue_core.models.tickets import MAX_ID, Ticket
from queue_core.states import Automation, DecisionWhy, SourceKind, Verdict


class ReasonCode(models.Model):
    """The ground of a decision, with the clause it rests on and the text the author may read."""

    code = models.CharField(_("code"), max_length=64, unique=True)
    title = models.CharField(_("title"), max_length=120)
    clause = models.CharField(_("law or terms clause"), max_length=200, blank=True, default="")
    public_text = models.TextField(_("public text"), blank=True, default="", max_length=2000)
    is_for_rejection = models.BooleanField(_("for rejecting"), default=True)
    is_active = models.BooleanField(_("in use"), default=True)
    lanes = models.JSONField(
        _("lanes"),
        default=list,
        db_default=models.Value([], models.JSONField()),
        blank=True,
        help_text=_("None chosen: all lanes."),
    )
    needs_note = models.BooleanField(
        _("needs a note"),
        default=False,
        db_default=False,
        help_text=_("Nobody decides by this code without saying more."),
    )
    needs_second_look = models.BooleanField(
        _("needs a second look"),
        default=False,
        db_default=False,
        help_text=_("Each decision of a person by this code is looked at by another one."),
    )
    version = models.PositiveIntegerField(default=1, editable=False)

    class Meta:
        verbose_name = _("reason code")
        verbose_name_plural = _("reason codes")
        ordering = ["code"]
        constraints = [models.CheckConstraint(condition=~Q(code=""), name="reason_code_named")]

    def __str__(self) -> str:
        return f"{self.code}: {self.title}"

    @classmethod
    def rejecting(cls, lane_id: int) -> frozenset[str]:
        """The codes that are a ground for a policy of this lane to reject by, as they are for its people."""
        codes = cls.objects.filter(Q(lanes=[]) | Q(lanes__contains=[lane_id]), is_active=True, is_for_rejection=True)
        return frozenset(codes.values_list("code", flat=True))


class ReasonCodeVersion(models.Model):
    """What a reason code said while it had this version: what the author of a decided content was told. Insert-only."""

    ground = models.ForeignKey(ReasonCode, models.PROTECT, related_name="versions", db_index=False)
    version = models.PositiveIntegerField()
    title = models.CharField(max_length=120)
    clause = models.CharField(max_length=200, blank=True, default="")
    public_text = models.TextField(blank=True, default="", max_length=2000)
    made_at = models.DateTimeField(null=True, help_text="None: from before versions were kept.")

    class Meta:
        verbose_name = _("version of a reason code")
        verbose_name_plural = _("versions of reason codes")
        constraints = [models.UniqueConstraint(fields=["ground", "version"], name="reason_code_version_once")]

    def __str__(self) -> str:
        return f"{self.ground_id} v{self.version}"


class Policy(models.Model):
    """One version of how a lane turns scores into APPROVED, REJECTED or MANUAL. Never edited: a change is a version.

    `questions` are what the model is asked, for kinds of connections that ask; `rules` judge what it answers.
    """

    lane = models.ForeignKey(Lane, models.PROTECT, related_name="policies", verbose_name=_("lane"))
    version = models.PositiveIntegerField(_("version"))
    questions = models.JSONField(
        _("questions"), default=list, db_default=models.Value([], models.JSONField()), blank=True
    )
    rules = models.JSONField(_("rules"))
    note = models.CharField(_("note"), max_length=500, blank=True, default="")
    made_at = models.DateTimeField(_("made"))
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+", verbose_name=_("made by")
    )

    class Meta:
        verbose_name = _("policy")
        verbose_name_plural = _("policies")
        ordering = ["lane", "-version"]
        constraints = [models.UniqueConstraint(fields=["lane", "version"], name="policy_version_once_a_lane")]

    def __str__(self) -> str:
        return f"{self.lane_id} v{self.version}"


class Decision(models.Model):
    """What a ticket's revision got, as a link of an append-only chain.

    A link names the one it replaces; each is replaced at most once and each revision has one first link, so the chain
    cannot fork. The last link is in force where it has a verdict: a recall has none, nor has a decision taken back that
    had replaced nothing. A trigger looks for its job, ticket and attempt, for all rows of a statement at once.
    """

    ticket = models.ForeignKey(Ticket, models.PROTECT, related_name="decisions", db_index=False, db_constraint=False)
    revision = models.CharField(max_length=MAX_ID)
    job = models.ForeignKey(
        "queue_core.Job", models.PROTECT, related_name="decisions", db_index=False, db_constraint=False
    )
    lane = models.ForeignKey(Lane, models.PROTECT, related_name="+", db_index=False, db_constraint=False)
    verdict = models.CharField(max_length=8, choices=Verdict, null=True)
    why = models.CharField(max_length=12, choices=DecisionWhy, default=DecisionWhy.FIRST, db_default="first")
    replaces = models.OneToOneField("self", models.PROTECT, null=True, related_name="replaced_by")
    attempt = models.OneToOneField(
        "queue_core.Attempt", models.PROTECT, null=True, related_name="decision", db_constraint=False
    )
    assignment = models.OneToOneField("queue_core.Assignment", models.PROTECT, null=True, related_name="decision")
    person = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+", db_index=False)
    reason_code = models.ForeignKey(ReasonCode, models.PROTECT, null=True, related_name="+", db_index=False)
    reason_version = models.PositiveIntegerField(
        null=True, help_text="The reason code's, when a person decided by it. The model's follows from the time."
    )
    note = models.TextField(blank=True, default="", db_default="", max_length=4000)
    source_kind = models.CharField(max_length=20, choices=SourceKind)
    automation = models.CharField(max_length=8, choices=Automation)
    policy = models.ForeignKey(Policy, models.PROTECT, null=True, related_name="+", db_index=False, db_constraint=False)
    run = models.ForeignKey(
        "queue_core.StageRun", models.PROTECT, null=True, related_name="+", db_index=False, db_constraint=False
    )
    is_unseen = models.BooleanField(default=False, db_default=False)
    decided_at = models.DateTimeField()

    class Meta:
        verbose_name = _("decision")
        verbose_name_plural = _("decisions")
        constraints = [
            models.UniqueConstraint(
                fields=["ticket", "revision"], condition=Q(replaces__isnull=True), name="decision_first_once_a_revision"
            ),
            models.UniqueConstraint(
                fields=["job"], condition=Q(attempt__isnull=False), name="decision_by_the_machine_once_a_job"
            ),
            models.CheckConstraint(
                condition=Q(why=DecisionWhy.RECALL, verdict__isnull=True, attempt__isnull=True, assignment__isnull=True)
                | Q(
                    why=DecisionWhy.TAKEN_BACK,
                    attempt__isnull=True,
                    assignment__isnull=True,
                    person__isnull=False,
                )
                | (
                    ~Q(why__in=[DecisionWhy.RECALL, DecisionWhy.TAKEN_BACK])
                    & Q(verdict__isnull=False)
                    & (
                        Q(attempt__isnull=False, assignment__isnull=True)
                        | Q(attempt__isnull=True, assignment__isnull=False, person__isnull=False)
                    )
                ),
                name="decision_by_one_attempt_or_one_person",
            ),
            models.CheckConstraint(
                condition=~Q(verdict=Verdict.REJECTED) | Q(reason_code__isnull=False),
                name="decision_to_reject_has_a_ground",
            ),
            models.CheckConstraint(
                condition=Q(why=DecisionWhy.FIRST, replaces__isnull=True)
                | (~Q(why=DecisionWhy.FIRST) & Q(replaces__isnull=False)),
                name="decision_first_replaces_nothing",
            ),
        ]
        indexes = [
            models.Index(fields=["lane", "decided_at"], name="decision_lane_time"),
            models.Index(
                fields=["lane", "decided_at"], name="decision_by_people", condition=Q(assignment__isnull=False)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.ticket_id}@{self.revision} {self.verdict}"

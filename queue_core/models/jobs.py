from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from queue_core.models.lanes import Lane, ModelConnection
from queue_core.models.tickets import MAX_ID, Evidence, Ticket
from queue_core.states import UNKNOWN_EFFECTS, AttemptOutcome, DeadReason, JobState, Result

MAX_DETAIL = 512


class Job(models.Model):
    """The review of one revision of one ticket. `contract` and `batch` alone write it.

    Narrow on purpose: evidence stands elsewhere, and only the partial indexes below are kept, since each index more
    is paid for by every claim.
    """

    lane = models.ForeignKey(Lane, models.PROTECT, related_name="jobs", db_index=False)
    ticket = models.ForeignKey(Ticket, models.PROTECT, related_name="jobs", db_index=False)
    evidence = models.ForeignKey(Evidence, models.PROTECT, related_name="jobs", db_index=False)
    revision = models.CharField(max_length=MAX_ID)
    round = models.PositiveSmallIntegerField(default=1, db_default=1)
    state = models.CharField(max_length=8, choices=JobState, default=JobState.WAITING, db_default="WAITING")
    severity = models.PositiveSmallIntegerField()
    added_at = models.DateTimeField()
    queued_at = models.DateTimeField()
    deadline = models.DateTimeField()
    urgency = models.DateTimeField()
    available_at = models.DateTimeField(null=True)
    backoff_steps = models.PositiveIntegerField(default=0, db_default=0)
    attempts = models.PositiveIntegerField(default=0, db_default=0)
    max_attempts = models.PositiveIntegerField()
    fence = models.BigIntegerField(default=0, db_default=0)
    lease_until = models.DateTimeField(null=True)
    result = models.CharField(max_length=8, choices=Result, null=True)
    dead_reason = models.CharField(max_length=10, choices=DeadReason, null=True)
    finished_at = models.DateTimeField(null=True)
    requeues = models.PositiveIntegerField(default=0, db_default=0)

    class Meta:
        verbose_name = _("job")
        verbose_name_plural = _("jobs")
        constraints = [
            models.UniqueConstraint(fields=["ticket", "revision", "round"], name="job_once_a_round"),
            models.CheckConstraint(condition=~Q(revision="") & Q(round__gte=1), name="job_is_named"),
            models.CheckConstraint(condition=Q(state__in=JobState.values), name="job_state_known"),
            models.CheckConstraint(
                condition=Q(attempts__lte=F("fence")) & Q(max_attempts__gte=1), name="job_attempts_within_fence"
            ),
            models.CheckConstraint(
                condition=~Q(state=JobState.WAITING) | Q(attempts__lt=F("max_attempts")),
                name="job_waits_with_a_try_left",
            ),
            models.CheckConstraint(condition=Q(deadline__gt=F("queued_at")), name="job_deadline_after_queued"),
            models.CheckConstraint(
                condition=Q(lease_until__isnull=True) | Q(fence__gte=1), name="job_lease_needs_a_fence"
            ),
            models.CheckConstraint(
                condition=~Q(state=JobState.LEASED) | Q(lease_until__isnull=False, lease_until__lte=F("deadline")),
                name="job_leased_within_deadline",
            ),
            models.CheckConstraint(
                condition=Q(state=JobState.DONE, result__isnull=False, result__in=Result.values)
                | (~Q(state=JobState.DONE) & Q(result__isnull=True)),
                name="job_result_only_when_done",
            ),
            models.CheckConstraint(
                condition=Q(state=JobState.DEAD, dead_reason__isnull=False, dead_reason__in=DeadReason.values)
                | (~Q(state=JobState.DEAD) & Q(dead_reason__isnull=True)),
                name="job_reason_only_when_dead",
            ),
            models.CheckConstraint(
                condition=Q(state__in=[JobState.DONE, JobState.DEAD], finished_at__isnull=False)
                | Q(state__in=[JobState.WAITING, JobState.LEASED], finished_at__isnull=True),
                name="job_finished_at_only_at_the_end",
            ),
            models.CheckConstraint(
                condition=Q(available_at__isnull=True) | Q(state=JobState.WAITING),
                name="job_back_off_only_while_waiting",
            ),
        ]
        indexes = [
            models.Index(
                fields=["lane", "urgency", "id"],
                name="job_claimable",
                condition=Q(state=JobState.WAITING, available_at__isnull=True),
            ),
            models.Index(fields=["lane", "lease_until"], name="job_leased", condition=Q(state=JobState.LEASED)),
            models.Index(
                fields=["available_at"],
                name="job_back_off",
                condition=Q(state=JobState.WAITING, available_at__isnull=False),
            ),
            models.Index(fields=["lane", "deadline", "id"], name="job_deadline", condition=Q(state=JobState.WAITING)),
            models.Index(fields=["lane", "queued_at"], name="job_oldest", condition=Q(state=JobState.WAITING)),
            # Written when a job rests, and never by a claim of one that does not.
            models.Index(
                fields=["lane", "queued_at"],
                name="job_resting",
                condition=Q(state=JobState.WAITING, available_at__isnull=False),
            ),
            # For the list of DEAD jobs, newest first: few among millions. Written only when a job dies or is requeued.
            models.Index(fields=["id"], name="job_dead", condition=Q(state=JobState.DEAD)),
        ]

    def __str__(self) -> str:
        return f"{self.pk}"


class Attempt(models.Model):
    """One claim of a job, insert-only, closed once.

    An open attempt whose `lease_until` is not over is a running lease: caps count these rows, so that no counter can
    drift and work that was superseded keeps its seat until its holder reports.

    What it names is no foreign key to the database: checking five rows one by one took longer than writing the attempt.
    A trigger looks for its job once a statement; the others come from rows locked in the same transaction. None of them
    is ever deleted.
    """

    job = models.ForeignKey(Job, models.PROTECT, related_name="attempt_rows", db_index=False, db_constraint=False)
    lane = models.ForeignKey(Lane, models.PROTECT, related_name="+", db_index=False, db_constraint=False)
    fence = models.BigIntegerField()
    key = models.UUIDField()
    worker = models.CharField(max_length=200)
    run = models.ForeignKey(
        "queue_core.StageRun", models.PROTECT, null=True, related_name="+", db_index=False, db_constraint=False
    )
    policy = models.ForeignKey(
        "queue_core.Policy", models.PROTECT, null=True, related_name="+", db_index=False, db_constraint=False
    )
    connection = models.ForeignKey(
        ModelConnection, models.PROTECT, null=True, related_name="+", db_index=False, db_constraint=False
    )
    number = models.PositiveIntegerField()
    is_charged = models.BooleanField(default=True, db_default=True)
    started_at = models.DateTimeField()
    lease_until = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    outcome = models.CharField(max_length=16, choices=AttemptOutcome, null=True)
    is_committed = models.BooleanField(default=False, db_default=False)
    latency = models.DurationField(null=True)
    scores = models.JSONField(null=True)
    cause = models.CharField(max_length=40, blank=True, default="", db_default="")
    detail = models.CharField(max_length=MAX_DETAIL, blank=True, default="", db_default="")
    model = models.CharField(max_length=200, blank=True, default="", db_default="")
    request_id = models.CharField(max_length=200, blank=True, default="", db_default="")
    usage = models.JSONField(null=True)

    class Meta:
        verbose_name = _("attempt")
        verbose_name_plural = _("attempts")
        constraints = [
            models.UniqueConstraint(fields=["job", "fence"], name="attempt_once_a_fence"),
            models.CheckConstraint(condition=Q(fence__gte=1), name="attempt_fence_from_one"),
            models.CheckConstraint(
                condition=Q(ended_at__isnull=True, outcome__isnull=True)
                | Q(ended_at__isnull=False, outcome__isnull=False),
                name="attempt_outcome_when_ended",
            ),
            models.CheckConstraint(
                condition=Q(is_committed=False)
                | Q(outcome__isnull=False, outcome__in=["verdict", "refused", "input_rejected"]),
                name="attempt_committed_by_an_answer",
            ),
        ]
        indexes = [
            models.Index(fields=["lane", "id"], name="attempt_open", condition=Q(ended_at__isnull=True)),
            models.Index(fields=["lane", "started_at"], name="attempt_started"),
            models.Index(fields=["lane", "ended_at"], name="attempt_ended", condition=Q(ended_at__isnull=False)),
            # Few among millions, counted on a lane's page. Only a bad end writes it.
            models.Index(fields=["lane", "ended_at"], name="attempt_unknown", condition=Q(outcome__in=UNKNOWN_EFFECTS)),
        ]

    def __str__(self) -> str:
        return f"{self.job_id}#{self.fence}"


class LateAnswer(models.Model):
    """An answer whose token no longer held: counted, kept as evidence, never applied."""

    job = models.ForeignKey(Job, models.PROTECT, related_name="late_answers")
    lane = models.ForeignKey(Lane, models.PROTECT, related_name="+", db_index=False)
    run = models.ForeignKey("queue_core.StageRun", models.PROTECT, null=True, related_name="+", db_index=False)
    fence = models.BigIntegerField()
    revision = models.CharField(max_length=MAX_ID)
    result = models.CharField(max_length=32)
    why = models.CharField(max_length=20)
    worker = models.CharField(max_length=200)
    scores = models.JSONField(null=True)
    received_at = models.DateTimeField()

    class Meta:
        verbose_name = _("late answer")
        verbose_name_plural = _("late answers")
        indexes = [models.Index(fields=["lane", "received_at"], name="late_answer_lane_time")]

    def __str__(self) -> str:
        return f"{self.job_id}#{self.fence}"

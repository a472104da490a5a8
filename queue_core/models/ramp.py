from datetime import timedelta

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from queue_core.models.lanes import Lane, ModelConnection
from queue_core.states import HoldForm, HoldReason, RunEnd


class StageRun(models.Model):
    """One approved run of one stage: the record of the raise and a snapshot of what was approved. Closed once."""

    lane = models.ForeignKey(Lane, models.PROTECT, related_name="runs")
    number = models.PositiveSmallIntegerField(_("stage"))
    name = models.CharField(max_length=60)
    is_last = models.BooleanField(default=False)
    cap = models.PositiveIntegerField(_("approved cap"))
    rate = models.PositiveIntegerField(_("claims per minute"), null=True)
    soak_completions = models.PositiveIntegerField()
    soak_time = models.DurationField()
    window = models.DurationField()
    least_sample = models.PositiveIntegerField()
    max_error_ratio = models.FloatField()
    max_timeout_ratio = models.FloatField()
    max_stale_ratio = models.FloatField()
    max_latency = models.DurationField(null=True)
    keeps_back = models.BooleanField(default=False)
    max_share_shift = models.FloatField(null=True)
    max_wrong_ratio = models.FloatField(null=True)
    known_every = models.DurationField(default=timedelta(minutes=10), db_default=timedelta(minutes=10))
    blind_share = models.FloatField(default=0.0, db_default=0.0)
    least_blind = models.PositiveIntegerField(default=10, db_default=10)
    max_disagreement = models.FloatField(null=True)
    connection = models.ForeignKey(ModelConnection, models.PROTECT, related_name="+")
    connection_snapshot = models.JSONField(help_text="kind, address, model, call time limit as approved")
    lease = models.DurationField()
    policy = models.ForeignKey("queue_core.Policy", models.PROTECT, related_name="+")
    raised_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+")
    reason = models.CharField(max_length=500)
    override_reason = models.CharField(max_length=500, blank=True, default="")
    figures = models.JSONField(help_text="what the person saw, measured again at the raise")
    resumes = models.ForeignKey("self", models.PROTECT, null=True, related_name="+")
    started_at = models.DateTimeField()
    known_asked_at = models.DateTimeField(null=True)
    blind_up_to = models.DateTimeField(null=True)
    accepted_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    ended_as = models.CharField(max_length=16, choices=RunEnd, null=True)
    ended_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+")

    class Meta:
        verbose_name = _("stage run")
        verbose_name_plural = _("stage runs")
        constraints = [
            models.UniqueConstraint(fields=["lane"], condition=Q(ended_at__isnull=True), name="run_open_once_a_lane"),
            models.CheckConstraint(condition=Q(cap__gte=1), name="run_cap_at_least_one"),
            models.CheckConstraint(
                condition=Q(ended_at__isnull=True, ended_as__isnull=True)
                | Q(ended_at__isnull=False, ended_as__isnull=False),
                name="run_end_when_ended",
            ),
        ]
        indexes = [models.Index(fields=["lane", "-started_at"], name="run_lane_time")]

    def __str__(self) -> str:
        return f"{self.lane_id}/{self.number}"


class Hold(models.Model):
    """A lane on hold: by whom or by which guardrail, why, since when."""

    lane = models.ForeignKey(Lane, models.PROTECT, related_name="holds")
    form = models.CharField(max_length=8, choices=HoldForm, default=HoldForm.HOLD)
    is_automatic = models.BooleanField(default=False)
    reason = models.CharField(max_length=20, choices=HoldReason)
    params = models.JSONField(default=dict)
    note = models.CharField(max_length=500, blank=True, default="")
    by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+")
    run = models.ForeignKey(StageRun, models.PROTECT, null=True, related_name="holds")
    until = models.DateTimeField(_("held on purpose until"), null=True)
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    ended_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+")

    class Meta:
        verbose_name = _("hold")
        verbose_name_plural = _("holds")
        constraints = [
            models.UniqueConstraint(fields=["lane"], condition=Q(ended_at__isnull=True), name="hold_open_once_a_lane"),
            models.CheckConstraint(
                condition=Q(is_automatic=True) | Q(by__isnull=False), name="hold_by_a_person_or_automatic"
            ),
        ]
        indexes = [models.Index(fields=["lane", "-started_at"], name="hold_lane_time")]

    def __str__(self) -> str:
        return f"{self.lane_id} {self.reason}"


class Outage(models.Model):
    """A time in which a connection could not be used, and its lanes."""

    connection = models.ForeignKey(ModelConnection, models.PROTECT, related_name="outages")
    cause = models.CharField(max_length=20, choices=HoldReason)
    opened_at = models.DateTimeField()
    opened_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+")
    closed_at = models.DateTimeField(null=True)
    closed_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+")
    lead_on_duty = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+")
    handover_note = models.TextField(blank=True, default="", max_length=4000)

    class Meta:
        verbose_name = _("outage")
        verbose_name_plural = _("outages")
        constraints = [
            models.UniqueConstraint(
                fields=["connection"], condition=Q(closed_at__isnull=True), name="outage_open_once_a_connection"
            )
        ]
        indexes = [models.Index(fields=["-opened_at"], name="outage_time")]

    def __str__(self) -> str:
        return f"{self.connection_id} {self.opened_at:%Y-%m-%d %H:%M}"


class OutageEntry(models.Model):
    """One line of an outage's log: what happened as a code with parameters, and what a person said of it in `text`."""

    outage = models.ForeignKey(Outage, models.PROTECT, related_name="entries")
    at = models.DateTimeField()
    by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+")
    lane = models.ForeignKey(Lane, models.PROTECT, null=True, related_name="+")
    code = models.CharField(max_length=40)
    params = models.JSONField(default=dict, db_default=models.Value({}, models.JSONField()))
    text = models.CharField(max_length=1000, blank=True, default="", db_default="")

    class Meta:
        verbose_name = _("entry of an outage's log")
        verbose_name_plural = _("entries of outages' logs")
        ordering = ["at", "id"]

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M:%S} {self.code}"

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from queue_core.models.decisions import Decision
from queue_core.models.jobs import Job
from queue_core.models.lanes import Lane
from queue_core.models.ramp import StageRun
from queue_core.states import RecallOutcome, RecallTo


class Recall(models.Model):
    """Machine decisions taken back by a named person: `selection` says which, entries are the decisions. Ended once.

    Nothing of it is a counter: how far it is, is counted from the entries.
    """

    lane = models.ForeignKey(Lane, models.PROTECT, related_name="recalls")
    run = models.ForeignKey(StageRun, models.PROTECT, null=True, related_name="recalls")
    selection = models.JSONField()
    to = models.CharField(max_length=8, choices=RecallTo)
    deadline_after = models.DurationField(null=True)
    reason = models.CharField(max_length=500)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = _("recall")
        verbose_name_plural = _("recalls")
        constraints = [
            models.CheckConstraint(
                condition=~Q(to=RecallTo.REVIEW) | Q(deadline_after__isnull=False),
                name="recall_to_review_has_a_deadline",
            ),
        ]
        indexes = [
            models.Index(fields=["lane", "-started_at"], name="recall_lane_time"),
            models.Index(fields=["id"], name="recall_open", condition=Q(ended_at__isnull=True)),
        ]

    def __str__(self) -> str:
        return f"{self.lane_id} {self.started_at:%Y-%m-%d %H:%M:%S}"


class RecallEntry(models.Model):
    """One decision of a recall: pending until `outcome` says what became of it, which is written once."""

    recall = models.ForeignKey(Recall, models.PROTECT, related_name="entries", db_index=False)
    decision = models.ForeignKey(Decision, models.PROTECT, related_name="recall_entries")
    outcome = models.CharField(max_length=12, choices=RecallOutcome, null=True)
    job = models.ForeignKey(Job, models.PROTECT, null=True, related_name="+", db_index=False)
    at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = _("entry of a recall")
        verbose_name_plural = _("entries of recalls")
        constraints = [
            models.UniqueConstraint(fields=["recall", "decision"], name="recall_entry_once_a_decision"),
            models.CheckConstraint(
                condition=Q(outcome__isnull=True, at__isnull=True, job__isnull=True)
                | Q(outcome__isnull=False, at__isnull=False),
                name="recall_entry_time_when_done",
            ),
        ]
        indexes = [
            models.Index(fields=["recall", "id"], name="recall_entry_pending", condition=Q(outcome__isnull=True))
        ]

    def __str__(self) -> str:
        return f"{self.recall_id}/{self.decision_id}"

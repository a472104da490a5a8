from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from queue_core.models.decisions import ReasonCode
from queue_core.models.jobs import Job
from queue_core.models.people import Item
from queue_core.states import BulkKind, BulkOutcome

MAX_REASON = 500
MAX_FAULT = 200


class BulkAct(models.Model):
    """One person's act on many jobs: its entries are written at the preview, and carried out once it is confirmed.

    Nothing of it is a counter: how far it is, is counted from the entries. `begun_at` is when the first worker took it
    up, `worked_at` when one last did; a preview that nobody confirms is thrown away.
    What rejects needs a second person.
    """

    kind = models.CharField(max_length=16, choices=BulkKind)
    selection = models.JSONField(help_text="what was asked for: a filter, or that rows were ticked")
    left_out = models.JSONField(default=dict, help_text="how many of the selection were left out, by why")
    is_capped = models.BooleanField(default=False)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    previewed_at = models.DateTimeField()
    terms = models.JSONField(default=dict)
    reason = models.CharField(max_length=MAX_REASON, blank=True, default="")
    reason_code = models.ForeignKey(ReasonCode, models.PROTECT, null=True, related_name="+", db_index=False)
    confirmed_at = models.DateTimeField(null=True)
    seconded_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+")
    seconded_at = models.DateTimeField(null=True)
    begun_at = models.DateTimeField(null=True)
    worked_at = models.DateTimeField(null=True)
    stopped_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+")
    stopped_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = _("bulk act")
        verbose_name_plural = _("bulk acts")
        constraints = [
            models.CheckConstraint(
                condition=Q(confirmed_at__isnull=True, begun_at__isnull=True, stopped_at__isnull=True)
                & Q(ended_at__isnull=True)
                | Q(confirmed_at__isnull=False) & ~Q(reason=""),
                name="bulk_act_with_a_reason_when_confirmed",
            ),
            models.CheckConstraint(
                condition=Q(stopped_at__isnull=True, stopped_by__isnull=True)
                | Q(stopped_at__isnull=False, stopped_by__isnull=False),
                name="bulk_act_stopped_by_somebody",
            ),
            models.CheckConstraint(
                condition=Q(seconded_at__isnull=True, seconded_by__isnull=True)
                | Q(confirmed_at__isnull=False, seconded_at__isnull=False, seconded_by__isnull=False)
                & ~Q(seconded_by=F("by")),
                name="bulk_act_seconded_by_another",
            ),
            models.CheckConstraint(
                condition=~Q(kind=BulkKind.REJECT)
                | Q(confirmed_at__isnull=True)
                | Q(reason_code__isnull=False) & (Q(begun_at__isnull=True) | Q(seconded_at__isnull=False)),
                name="bulk_act_rejects_with_a_ground_and_a_second",
            ),
        ]
        indexes = [
            models.Index(
                fields=["id"],
                name="bulk_act_under_way",
                condition=Q(confirmed_at__isnull=False, ended_at__isnull=True),
            ),
            models.Index(fields=["previewed_at"], name="bulk_act_preview", condition=Q(confirmed_at__isnull=True)),
        ]
        permissions = [("reject_in_bulk", _("May reject items in bulk, with a second person"))]

    def __str__(self) -> str:
        return f"{self.kind} {self.pk}"


class BulkEntry(models.Model):
    """One job of a bulk act as the preview saw it. Pending until `outcome` says what became of it, written once.

    `fence` is the job's, `item_fence` that of its open item where the act is about items, `deadline` the job's then:
    what differs when its turn comes was changed by somebody meanwhile. `place` orders the act, most severe first.
    People decide the `is_sample` ones first, each for itself: only then may the rest be rejected.
    """

    act = models.ForeignKey(BulkAct, models.CASCADE, related_name="entries", db_index=False)
    place = models.PositiveIntegerField()
    job = models.ForeignKey(Job, models.PROTECT, related_name="+", db_index=False)
    item = models.ForeignKey(Item, models.PROTECT, null=True, related_name="+", db_index=False)
    fence = models.BigIntegerField()
    item_fence = models.BigIntegerField(null=True)
    deadline = models.DateTimeField()
    severity = models.PositiveSmallIntegerField()
    is_sample = models.BooleanField(default=False, db_default=False)
    outcome = models.CharField(max_length=16, choices=BulkOutcome, null=True)
    fault = models.CharField(max_length=MAX_FAULT, blank=True, default="", db_default="")
    at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = _("entry of a bulk act")
        verbose_name_plural = _("entries of bulk acts")
        constraints = [
            models.UniqueConstraint(fields=["act", "place"], name="bulk_entry_once_a_place"),
            models.UniqueConstraint(fields=["act", "job"], name="bulk_entry_once_a_job"),
            models.CheckConstraint(
                condition=Q(item__isnull=True, item_fence__isnull=True)
                | Q(item__isnull=False, item_fence__isnull=False),
                name="bulk_entry_item_with_its_fence",
            ),
            models.CheckConstraint(
                condition=Q(outcome__isnull=True, at__isnull=True) | Q(outcome__isnull=False, at__isnull=False),
                name="bulk_entry_time_when_done",
            ),
        ]
        indexes = [
            models.Index(fields=["act", "place"], name="bulk_entry_pending", condition=Q(outcome__isnull=True)),
        ]

    def __str__(self) -> str:
        return f"{self.act_id}/{self.place}"

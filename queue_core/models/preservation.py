from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from queue_core.models.tickets import Evidence, Ticket

MAX_AUTHORITY = 120
MAX_REFERENCE = 120
MAX_GROUND = 200


class PreservationHold(models.Model):
    """Why a ticket's content is kept, for whom and until when. While one stands nothing of the ticket is erased.

    Lifted once, and otherwise as it was placed: a longer time is another hold.
    """

    ticket = models.ForeignKey(Ticket, models.PROTECT, related_name="preservation_holds", db_index=False)
    authority = models.CharField(max_length=MAX_AUTHORITY)
    reference = models.CharField(max_length=MAX_REFERENCE)
    reason = models.CharField(max_length=500)
    placed_at = models.DateTimeField()
    placed_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+", db_index=False)
    until = models.DateTimeField()
    lifted_at = models.DateTimeField(null=True)
    lifted_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+", db_index=False)
    lifted_reason = models.CharField(max_length=500, blank=True, default="", db_default="")

    class Meta:
        verbose_name = _("preservation hold")
        verbose_name_plural = _("preservation holds")
        constraints = [
            models.CheckConstraint(condition=Q(until__gt=F("placed_at")), name="preservation_ends_after_it_begins"),
            models.CheckConstraint(
                condition=Q(lifted_at__isnull=True, lifted_by__isnull=True, lifted_reason="")
                | (Q(lifted_at__isnull=False, lifted_by__isnull=False) & ~Q(lifted_reason="")),
                name="preservation_lifted_by_somebody_who_says_why",
            ),
        ]
        indexes = [models.Index(fields=["ticket", "-id"], name="preservation_ticket")]

    def __str__(self) -> str:
        return f"{self.authority} {self.reference}"


class EvidenceReport(models.Model):
    """That a revision's content was reported to an authority, and under which reference. Insert-only."""

    evidence = models.ForeignKey(Evidence, models.PROTECT, related_name="reports")
    authority = models.CharField(max_length=MAX_AUTHORITY)
    reference = models.CharField(max_length=MAX_REFERENCE)
    reported_at = models.DateTimeField()
    reported_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+", db_index=False)

    class Meta:
        verbose_name = _("report to an authority")
        verbose_name_plural = _("reports to authorities")
        constraints = [
            models.UniqueConstraint(fields=["evidence", "authority", "reference"], name="evidence_report_once")
        ]

    def __str__(self) -> str:
        return f"{self.authority} {self.reference}"

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from queue_core.models.lanes import Lane
from queue_core.states import DeadlineKind, Exposure, SourceKind

MAX_ID = 200
MAX_SOURCE = 64


class Ticket(models.Model):
    """The source system's item, with its current revision. `seq` numbers its messages, under this row's lock."""

    source = models.CharField(_("source"), max_length=MAX_SOURCE)
    external_id = models.CharField(_("ticket"), max_length=MAX_ID)
    current_revision = models.CharField(_("current revision"), max_length=MAX_ID)
    lane = models.ForeignKey(Lane, models.PROTECT, related_name="tickets", verbose_name=_("lane"))
    severity = models.PositiveSmallIntegerField(_("severity"))
    category = models.CharField(_("category"), max_length=64, blank=True, default="")
    source_kind = models.CharField(_("source kind"), max_length=20, choices=SourceKind)
    exposure = models.CharField(_("exposure"), max_length=10, choices=Exposure)
    deadline_kind = models.CharField(_("deadline kind"), max_length=10, choices=DeadlineKind)
    first_seen_at = models.DateTimeField(_("first seen"))
    withdrawn_at = models.DateTimeField(_("withdrawn"), null=True)
    seq = models.BigIntegerField(default=0, db_default=0)

    class Meta:
        verbose_name = _("ticket")
        verbose_name_plural = _("tickets")
        constraints = [
            models.UniqueConstraint(fields=["source", "external_id"], name="ticket_once_a_source"),
            models.CheckConstraint(
                condition=~Q(source="") & ~Q(external_id="") & ~Q(current_revision=""), name="ticket_is_named"
            ),
            models.CheckConstraint(condition=Q(severity__lte=3), name="ticket_severity_in_0_to_3"),
        ]

    def __str__(self) -> str:
        return self.external_id


class Evidence(models.Model):
    """The content of one revision as it was sent, sealed by its digest.

    `body` is JSON text, not jsonb: jsonb would reorder keys and rewrite numbers, and the seal is over the bytes that
    were accepted. `erase` alone may blank it; `erased_digest` then keeps a keyed hash.
    """

    ticket = models.ForeignKey(Ticket, models.PROTECT, related_name="revisions", db_index=False)
    revision = models.CharField(max_length=MAX_ID)
    body = models.TextField()
    size = models.PositiveIntegerField()
    digest = models.CharField(max_length=64)
    is_restricted = models.BooleanField(default=False, db_default=False)
    received_at = models.DateTimeField()
    erased_at = models.DateTimeField(null=True)
    erased_ground = models.CharField(max_length=200, blank=True, default="", db_default="")

    class Meta:
        verbose_name = _("evidence")
        verbose_name_plural = _("evidence")
        constraints = [
            models.UniqueConstraint(fields=["ticket", "revision"], name="evidence_once_a_revision"),
            models.CheckConstraint(condition=~Q(revision=""), name="evidence_revision_named"),
        ]

    def __str__(self) -> str:
        return f"{self.ticket_id}@{self.revision}"

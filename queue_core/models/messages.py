from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from queue_core.models.decisions import Decision
from queue_core.models.lanes import Lane
from queue_core.models.tickets import Ticket
from queue_core.states import MessageKind, MessageState


class Message(models.Model):
    """A fact for consumers, written in the transaction that made it true.

    `seq` is the ticket's own number, given under the ticket's lock. `number` is given by the relay's one step after
    the commit: whoever reads by it never skips a transaction that commits late (WHK-05).
    """

    ticket = models.ForeignKey(
        Ticket, models.PROTECT, null=True, related_name="messages", db_index=False, db_constraint=False
    )
    lane = models.ForeignKey(Lane, models.PROTECT, null=True, related_name="+", db_index=False, db_constraint=False)
    decision = models.ForeignKey(
        Decision, models.PROTECT, null=True, related_name="messages", db_index=False, db_constraint=False
    )
    seq = models.BigIntegerField(null=True)
    number = models.BigIntegerField(null=True, unique=True)
    key = models.UUIDField(unique=True)
    kind = models.CharField(max_length=20, choices=MessageKind)
    body = models.JSONField()
    state = models.CharField(max_length=10, choices=MessageState, default=MessageState.READY, db_default="ready")
    created_at = models.DateTimeField()
    not_before = models.DateTimeField(
        null=True, help_text="Until then whoever decided may take it back: the relay gives it no number."
    )

    class Meta:
        verbose_name = _("message")
        verbose_name_plural = _("messages")
        constraints = [
            models.UniqueConstraint(fields=["ticket", "seq"], name="message_seq_once_a_ticket"),
            models.UniqueConstraint(
                fields=["decision"], condition=Q(kind=MessageKind.DECISION), name="message_once_a_decision"
            ),
            models.CheckConstraint(
                condition=Q(ticket__isnull=True, seq__isnull=True)
                | Q(ticket__isnull=False, seq__isnull=False, seq__gte=1),
                name="message_of_a_ticket_has_a_seq",
            ),
            models.CheckConstraint(
                condition=~Q(kind=MessageKind.DECISION) | Q(decision__isnull=False), name="message_names_its_decision"
            ),
        ]
        indexes = [
            models.Index(
                fields=["id"],
                name="message_to_number",
                condition=Q(number__isnull=True, state=MessageState.READY) & ~Q(kind=MessageKind.TEST),
            ),
            models.Index(
                fields=["not_before"],
                name="message_not_before",
                condition=Q(number__isnull=True, not_before__isnull=False, state=MessageState.READY),
            ),
            models.Index(
                fields=["lane", "decision"], name="message_kept_back", condition=Q(state=MessageState.KEPT_BACK)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.key}"

"""What the shop does with a decision, in the very transaction that makes it: both are committed, or neither is."""

from typing import Any

from django.dispatch import receiver

from queue_core.models import Decision, Ticket
from queue_core.signals import ticket_decided
from shop.models import Review


@receiver(ticket_decided)
def show_or_hide(decision: Decision, ticket: Ticket, **_more: Any) -> None:
    """Raises Review.DoesNotExist where the shop has lost what was decided: then nothing is."""
    review = Review.objects.select_for_update().get(pk=ticket.external_id)
    review.is_shown = decision.verdict == "APPROVED"
    review.save(update_fields=["is_shown"])

"""Taking back what nobody has seen, for a recall."""

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime

from django.db import connection, transaction
from django.db.models import Q

from queue_core.models import Delivery, DeliveryTry, Message
from queue_core.relay.numbering import read_up_to
from queue_core.states import SEEN_OUTCOMES, DeliveryState, MessageState


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """Ids of messages: those that now go to nobody, and those that somebody has, or may have."""

    withdrawn: list[int] = field(default_factory=list)
    delivered: list[int] = field(default_factory=list)


def withdraw(message_ids: Collection[int], *, now: datetime) -> Withdrawn:
    """Withdraw the messages that surely nobody has seen, and say which ones somebody may have.

    Seen is: delivered, being sent, tried with an effect that is not known, or read from a page. Those stay as they are;
    the caller announces their recall. The caller is in a transaction and holds its lanes and tickets;
    messages are locked here by id, and then their deliveries by id.
    """
    if not connection.in_atomic_block:
        raise transaction.TransactionManagementError("Messages are withdrawn in the transaction that recalls them.")
    ids = sorted(message_ids)
    locked = list(Message.objects.select_for_update(no_key=True).filter(pk__in=ids).order_by("pk"))
    deliveries = Delivery.objects.select_for_update(no_key=True).filter(message_id__in=ids).order_by("pk")
    list(deliveries.values_list("pk", flat=True))
    seen = _seen([message.pk for message in locked])
    open_ones = [message.pk for message in locked if message.state != MessageState.WITHDRAWN]
    unseen = [pk for pk in open_ones if pk not in seen]
    Message.objects.filter(pk__in=unseen).update(state=MessageState.WITHDRAWN)
    Delivery.objects.filter(message_id__in=unseen, state=DeliveryState.PENDING).update(
        state=DeliveryState.WITHDRAWN, ended_at=now
    )
    return Withdrawn(unseen, [pk for pk in open_ones if pk in seen])


def seen_by_somebody(message_ids: Collection[int]) -> set[int]:
    """The same question without a lock, for a preview."""
    return _seen(message_ids)


def _seen(message_ids: Collection[int]) -> set[int]:
    # A try that is not closed runs, or its sender vanished: it counts as seen.
    may_have = Q(outcome__isnull=True) | Q(outcome__in=SEEN_OUTCOMES)
    tried = DeliveryTry.objects.filter(may_have, delivery__message_id__in=message_ids)
    read = Message.objects.filter(pk__in=message_ids, number__lte=read_up_to(), state=MessageState.READY)
    return {*tried.values_list("delivery__message_id", flat=True), *read.values_list("pk", flat=True)}

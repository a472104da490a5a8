"""What a recall does with the messages of decisions, until deliveries are rows: a number may have been read."""

from collections.abc import Collection

from queue_core.models import Message
from queue_core.states import MessageState


def withdraw(message_ids: Collection[int]) -> list[int]:
    """Withdraw, under their locks, the messages that nobody can have seen. Returns the others."""
    rows = Message.objects.select_for_update(no_key=True).filter(pk__in=message_ids).order_by("pk")
    locked = [row for row in rows if row.state != MessageState.WITHDRAWN]
    unseen = [row.pk for row in locked if row.number is None]
    Message.objects.filter(pk__in=unseen).update(state=MessageState.WITHDRAWN)
    return [row.pk for row in locked if row.number is not None]


def seen_by_somebody(message_ids: Collection[int]) -> set[int]:
    return set(Message.objects.filter(pk__in=message_ids, number__isnull=False).values_list("pk", flat=True))

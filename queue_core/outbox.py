"""Facts for consumers, recorded in the transaction that makes them true."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import uuid4

from django.db import connection, transaction

from queue_core import wakeups
from queue_core.models import Decision, Lane, Message, Ticket
from queue_core.states import MessageKind, MessageState


@dataclass(frozen=True, slots=True)
class Fact:
    """One message to be: what it says, and the ticket or lane it is about."""

    kind: MessageKind
    body: dict[str, Any]
    ticket: Ticket | None = None
    lane: Lane | int | None = None
    decision: Decision | None = None
    state: MessageState = MessageState.READY
    #: The relay gives it no number before: until then whoever decided may take it back.
    not_before: datetime | None = None


def record(
    kind: MessageKind,
    body: dict[str, Any],
    *,
    now: datetime,
    ticket: Ticket | None = None,
    lane: Lane | int | None = None,
    decision: Decision | None = None,
    state: MessageState = MessageState.READY,
) -> Message:
    """Record one message. See `record_many`."""
    return record_many([Fact(kind, body, ticket, lane, decision, state)], now=now)[0]


def record_many(facts: Sequence[Fact], *, now: datetime) -> list[Message]:
    """Record messages in order, each with its ticket's next `seq`.

    The caller is inside a transaction and holds the row lock of every ticket named, with `seq` as it was read under
    that lock; else two transactions would give the same number and one of them would fail.
    """
    if not connection.in_atomic_block:
        raise transaction.TransactionManagementError("A message is recorded in the transaction that makes it true.")
    messages = [_message(fact, now) for fact in facts]
    _store_seqs([fact.ticket for fact in facts if fact.ticket is not None])
    if messages:
        wakeups.wake_relay()
    return Message.objects.bulk_create(messages)


def _message(fact: Fact, now: datetime) -> Message:
    seq = None
    if fact.ticket is not None:
        fact.ticket.seq += 1
        seq = fact.ticket.seq
    return Message(
        ticket=fact.ticket,
        lane_id=fact.lane.pk if isinstance(fact.lane, Lane) else fact.lane,
        decision=fact.decision,
        seq=seq,
        key=uuid4(),
        kind=fact.kind,
        body=fact.body,
        state=fact.state,
        not_before=fact.not_before,
        created_at=now,
    )


def _store_seqs(tickets: Sequence[Ticket]) -> None:
    seqs: dict[int, int] = defaultdict(int)
    for ticket in tickets:
        seqs[ticket.pk] = max(seqs[ticket.pk], ticket.seq)
    if not seqs:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE queue_core_ticket t SET seq = x.seq"
            " FROM unnest(%s::bigint[], %s::bigint[]) x(id, seq) WHERE t.id = x.id",
            [list(seqs), list(seqs.values())],
        )

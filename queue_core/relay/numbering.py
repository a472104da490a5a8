"""The one step that numbers committed messages, and hands each to the endpoints that want it.

A number is given after the commit, by whoever holds the one lock: whoever reads on from a number has read all that
will ever stand before it, however late a transaction commits (WHK-05). A high-water mark over ids, which are given
before the commit, skips it.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from django.db import connection, transaction
from django.db.models import BigIntegerField, Exists, OuterRef, Q
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast

from queue_core.clock import Clock
from queue_core.models import Lane, Message, Outage, OutageEntry, RelayMark
from queue_core.states import MessageKind, MessageState

#: Any two steps exclude each other by it, in this database.
LOCK = 7_203_114
MOST_AT_ONCE = 5_000
MOST_ON_A_PAGE = 1_000
#: More messages than any time between two backups has.
LOST_AT_MOST = 10_000_000

#: A message that somebody holds is passed over, and so are the later ones of its ticket: they wait for it, as they do
#: for one that is kept back, or that may still be taken back. A message may go if as many of its ticket's earlier ones
#: are free here as have no number. Numbers of a ticket's messages rise with `seq` for that reason.
#: What is of no lane is of an outage: it names the connection's lanes, and so goes to endpoints that are told of each.
NUMBER = """
WITH free AS MATERIALIZED (
  SELECT id, ticket_id, seq FROM queue_core_message
  WHERE number IS NULL AND state = 'ready' AND NOT kind = 'endpoint.test' AND (not_before IS NULL OR not_before <= %s)
  ORDER BY id LIMIT %s FOR NO KEY UPDATE SKIP LOCKED),
next AS (
  SELECT f.id, row_number() OVER (ORDER BY f.id) AS place
  FROM (SELECT id, ticket_id, seq, row_number() OVER (PARTITION BY ticket_id ORDER BY seq) - 1 AS before FROM free) f
  WHERE f.ticket_id IS NULL OR f.before = (
    SELECT count(*) FROM queue_core_message b
    WHERE b.ticket_id = f.ticket_id AND b.seq < f.seq AND b.number IS NULL AND b.state IN ('ready', 'kept_back'))),
numbered AS (
  UPDATE queue_core_message m
  SET number = next.place + greatest(
    (SELECT coalesce(max(number), 0) FROM queue_core_message),
    (SELECT coalesce(max(read_up_to), 0) FROM queue_core_relaymark))
  FROM next WHERE m.id = next.id
  RETURNING m.id, m.number, m.kind, m.ticket_id, m.lane_id, (m.body ->> 'outage')::bigint AS outage_id),
about AS (
  SELECT n.id, jsonb_agg(l.id) AS lanes
  FROM numbered n JOIN queue_core_outage o ON o.id = n.outage_id
    JOIN queue_core_lane l ON l.connection_id = o.connection_id
      OR EXISTS (SELECT FROM queue_core_outageentry t WHERE t.outage_id = o.id AND t.lane_id = l.id)
  WHERE n.lane_id IS NULL
  GROUP BY n.id)
INSERT INTO queue_core_delivery
  (message_id, endpoint_id, ticket_id, lane_id, kind, number, state, tries, budget, due_at, created_at)
SELECT n.id, e.id, n.ticket_id, n.lane_id, n.kind, n.number, 'pending', 0, e.max_tries, %s, %s
FROM numbered n LEFT JOIN about ON about.id = n.id JOIN queue_core_endpoint e
  ON e.state <> 'retired' AND e.kinds @> to_jsonb(n.kind)
  AND (e.lanes = '[]'::jsonb OR e.lanes @> coalesce(to_jsonb(n.lane_id), about.lanes))
ORDER BY n.number, e.id
RETURNING endpoint_id
"""


def number_messages(*, clock: Clock, most: int = MOST_AT_ONCE) -> set[int]:
    """Number what is committed and ready, at most `most`, and make its deliveries. The endpoints that got some.

    Safe when two run: the second waits for the first, and then sees what it did. A message of no endpoint is numbered
    too, for whoever pages.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        # In a statement of its own: the next one's snapshot has to be taken after the lock.
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
        now = clock.now()
        cursor.execute(NUMBER, [now, most, now, now])
        return {row[0] for row in cursor.fetchall()}


def has_unnumbered() -> bool:
    ready = Message.objects.filter(number__isnull=True, state=MessageState.READY)
    return ready.exclude(kind=MessageKind.TEST).exists()


@dataclass(frozen=True, slots=True)
class Page:
    """Messages in the order of their numbers. `full_at`: where the page was full, whatever was withdrawn since."""

    messages: list[Message]
    full_at: int | None


def page_of_messages(
    after: int, limit: int, *, kinds: Collection[str] | None = None, lanes: Collection[int] | None = None
) -> list[Message]:
    """Numbered messages after a number, in its order. See `page`."""
    return page(after, limit, kinds=kinds, lanes=lanes).messages


@transaction.atomic
def page(
    after: int,
    limit: int,
    *,
    kinds: Collection[str] | None = None,
    lanes: Collection[int] | None = None,
    source: str | None = None,
    up_to: int | None = None,
) -> Page:
    """Numbered messages after a number, in its order; at most MOST_ON_A_PAGE. Begin with 0, go on with the last one's.

    With `lanes` only what is of them, and outages of connections that have no other lanes; with `source` only what is
    of its tickets; with `up_to` none above that number.

    Nothing that is committed later ever gets a number that was passed. A withdrawn message is left out. How far was
    read is remembered, because what somebody read can no longer be withdrawn: the rows are share-locked, so that a
    withdrawal either comes first or knows of this reading.
    """
    rows = Message.objects.filter(number__gt=after, state=MessageState.READY)
    if kinds is not None:
        rows = rows.filter(kind__in=kinds)
    if lanes is not None:
        outage_id = Cast(KeyTextTransform("outage", "body"), BigIntegerField())
        rows = rows.alias(outage_id=outage_id).filter(Q(lane_id__in=lanes) | _of_outages_within(lanes))
    if source is not None:
        rows = rows.filter(ticket__source=source)
    if up_to is not None:
        rows = rows.filter(number__lte=up_to)
    most = min(limit, MOST_ON_A_PAGE)
    wanted = list(rows.order_by("number").values_list("pk", "number")[:most])
    ready = keep_ready(pk for pk, _number in wanted)
    found = list(Message.objects.filter(pk__in=ready).select_related("ticket", "lane").order_by("number"))
    if found and found[-1].number is not None:
        _remember(found[-1].number)
    return Page(found, wanted[-1][1] if len(wanted) == most else None)


def keep_ready(message_ids: Iterable[int]) -> set[int]:
    """Those of the messages that are not withdrawn, and now stay so until the caller's transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id FROM queue_core_message WHERE id = ANY(%s) AND state = 'ready' ORDER BY id FOR SHARE",
            [list(message_ids)],
        )
        return {row[0] for row in cursor.fetchall()}


def _of_outages_within(lanes: Collection[int]) -> Q:
    """What is said of outages, which names each lane of the connection, to who may know of each."""
    logged = OutageEntry.objects.filter(outage=OuterRef(OuterRef("pk")), lane=OuterRef("pk"))
    about = Lane.objects.filter(Q(connection=OuterRef("connection")) | Exists(logged))
    within = Outage.objects.filter(Exists(about.filter(pk__in=lanes)), ~Exists(about.exclude(pk__in=lanes)))
    return Q(lane_id__isnull=True, outage_id__in=within.values("pk"))


@transaction.atomic
def skip_lost_numbers() -> None:
    """After a restore: give no number again that the lost time may have given to other messages.

    A reader that goes on from such a number would skip whatever got a lower one now. What was read is lost too, so that
    everything that has a number counts as read.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
    _remember(max(newest_number(), read_up_to()) + LOST_AT_MOST)


def newest_number() -> int:
    """The last number that was given; 0 before the first."""
    newest = Message.objects.filter(number__isnull=False).order_by("-number").values_list("number", flat=True).first()
    return newest or 0


def read_up_to() -> int:
    """The highest number that any reader of pages was shown."""
    return RelayMark.objects.filter(pk=1).values_list("read_up_to", flat=True).first() or 0


def _remember(number: int) -> None:
    if read_up_to() >= number:
        return
    RelayMark.objects.bulk_create([RelayMark(pk=1, read_up_to=0)], ignore_conflicts=True)
    RelayMark.objects.filter(pk=1, read_up_to__lt=number).update(read_up_to=number)

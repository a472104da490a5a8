"""What holds of deliveries: each is its message's, was tried as its tries say, and none is missing."""

from django.utils.translation import gettext_lazy as _

from queue_core.ledger.rules import Rule, in_sql
from queue_core.models import Delivery, DeliveryTry, Message

PLACE = """
SELECT d.id FROM queue_core_delivery d LEFT JOIN queue_core_message m ON m.id = d.message_id
WHERE d.id = ANY(%(ids)s::bigint[]) AND (m.id IS NULL
  OR (d.ticket_id, d.lane_id, d.kind, d.number) IS DISTINCT FROM (m.ticket_id, m.lane_id, m.kind, m.number))
"""

#: A delivered one has a try that was answered with 2xx then, or was taken for lost before the answer came. One that is
#: withdrawn is of a message that is, and the other way round one of a withdrawn message is not sent any more.
STATE = """
SELECT d.id FROM queue_core_delivery d JOIN queue_core_message m ON m.id = d.message_id
WHERE d.id = ANY(%(ids)s::bigint[]) AND (
  (d.state = 'delivered' AND NOT EXISTS (
    SELECT FROM queue_core_deliverytry t
    WHERE t.delivery_id = d.id AND (t.outcome = 'delivered' AND t.ended_at = d.ended_at OR t.outcome = 'lost')))
  OR (d.state = 'withdrawn' AND m.state <> 'withdrawn')
  OR (d.state = 'pending' AND m.state <> 'ready'))
"""

TRIES = """
SELECT d.id FROM queue_core_delivery d
WHERE d.id = ANY(%(ids)s::bigint[]) AND d.tries IS DISTINCT FROM (
  SELECT count(*) FILTER (WHERE t.number BETWEEN 1 AND d.tries)
  FROM queue_core_deliverytry t WHERE t.delivery_id = d.id)
"""

TRY_TIMES = """
SELECT t.id FROM queue_core_deliverytry t JOIN queue_core_delivery d ON d.id = t.delivery_id
WHERE t.id = ANY(%(ids)s::bigint[]) AND (t.ended_at < t.started_at OR t.started_at < d.created_at)
"""

#: Of an endpoint that is today as it was made, before the message: what others wanted then is not known any more. Nor
#: is which lanes an outage, whose messages are of no lane, was about.
WANTED = """
SELECT m.id FROM queue_core_message m JOIN queue_core_endpoint e
  ON e.version = 1 AND e.state <> 'retired' AND e.created_at <= m.created_at
  AND e.kinds @> to_jsonb(m.kind) AND (e.lanes = '[]'::jsonb OR e.lanes @> to_jsonb(m.lane_id))
WHERE m.id = ANY(%(ids)s::bigint[]) AND m.number IS NOT NULL AND m.state = 'ready' AND NOT EXISTS (
  SELECT FROM queue_core_delivery d WHERE d.message_id = m.id AND d.endpoint_id = e.id)
"""

#: Numbers of a ticket's messages rise with their `seq`; what may still go out keeps the later ones without a number.
ORDER = """
SELECT m.id FROM queue_core_message m
WHERE m.id = ANY(%(ids)s::bigint[]) AND m.number IS NOT NULL AND EXISTS (
  SELECT FROM queue_core_message b
  WHERE b.ticket_id = m.ticket_id AND b.seq < m.seq
    AND (b.number > m.number OR b.number IS NULL AND b.state IN ('ready', 'kept_back')))
"""

#: A ticket's second message for an endpoint waits for the first one. A replay waits after its own tries.
TURN = """
SELECT d.id FROM queue_core_delivery d
WHERE d.id = ANY(%(ids)s::bigint[]) AND (
  (d.number IS NULL) <> (d.kind = 'endpoint.test')
  OR d.tries > 0 AND EXISTS (
    SELECT FROM queue_core_delivery b
    WHERE b.endpoint_id = d.endpoint_id AND b.ticket_id = d.ticket_id AND b.number < d.number
      AND b.state = 'pending' AND b.tries = 0))
"""

RULES = (
    Rule("message_order", Message, _("has its number before an earlier one of its ticket"), in_sql(ORDER)),
    Rule("delivery_turn", Delivery, _("was tried before an earlier one of its ticket"), in_sql(TURN)),
    Rule("message_deliveries", Message, _("was numbered and an endpoint that wants it has none"), in_sql(WANTED)),
    Rule("delivery_place", Delivery, _("is of another ticket, lane, kind or number than its message"), in_sql(PLACE)),
    Rule("delivery_state", Delivery, _("stands otherwise than its tries and its message"), in_sql(STATE)),
    Rule("deliverytry_times", DeliveryTry, _("ran outside of its delivery's time"), in_sql(TRY_TIMES)),
    Rule("delivery_tries", Delivery, _("its tries are not one for each number from 1"), in_sql(TRIES)),
)

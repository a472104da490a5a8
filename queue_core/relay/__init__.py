"""From committed messages to consumers: numbered after the commit, delivered at least once, in order by ticket."""

from queue_core.relay.addresses import AddressRefused, check_address
from queue_core.relay.endpoints import (
    EndpointActed,
    EndpointOutcome,
    disable,
    enable,
    is_of,
    new_secret,
    retire,
    send_test,
    try_now,
)
from queue_core.relay.envelopes import envelope
from queue_core.relay.numbering import (
    MOST_ON_A_PAGE,
    newest_number,
    number_messages,
    page_of_messages,
    skip_lost_numbers,
)
from queue_core.relay.paging import Slice, read_on
from queue_core.relay.posting import Answer, post
from queue_core.relay.replaying import MOST_REPLAYED, Replayed, replay, replayable
from queue_core.relay.rows import sweep
from queue_core.relay.sending import Sent, send_due, step
from queue_core.relay.signing import SecretLost, sign
from queue_core.relay.standing import COUNT_CAP, Standing, endpoints, undelivered, waiting_for
from queue_core.relay.withdrawing import Withdrawn, seen_by_somebody, withdraw

__all__ = [
    "COUNT_CAP",
    "MOST_ON_A_PAGE",
    "MOST_REPLAYED",
    "AddressRefused",
    "Answer",
    "EndpointActed",
    "EndpointOutcome",
    "Replayed",
    "SecretLost",
    "Sent",
    "Slice",
    "Standing",
    "Withdrawn",
    "check_address",
    "disable",
    "enable",
    "endpoints",
    "envelope",
    "is_of",
    "new_secret",
    "newest_number",
    "number_messages",
    "page_of_messages",
    "post",
    "read_on",
    "replay",
    "replayable",
    "retire",
    "seen_by_somebody",
    "send_due",
    "send_test",
    "sign",
    "skip_lost_numbers",
    "step",
    "sweep",
    "try_now",
    "undelivered",
    "waiting_for",
    "withdraw",
]

"""People's work: items taken, extended, given back, handed over, decided; DEAD jobs requeued; waiting ones pulled.

An assignment is to a person what a lease is to a worker: its own fence, its own key, its own end. Each verb checks the
permission, locks first (person, ticket, job, item), then reads the clock, then judges the locked row. A lost race is
a returned outcome; a caller's mistake is an exception of `queue_core.errors`.
"""

from queue_core.people.assignments import MOST_HELD, extend, give_back, hand_over, take, take_next
from queue_core.people.desk import (
    Group,
    Reach,
    Supply,
    before_the_deadline,
    groups,
    held_by,
    holds_over,
    on_what,
    open_items,
    reach,
    supply,
)
from queue_core.people.group_requeue import (
    MOST_AT_ONCE,
    GroupOutcome,
    GroupPreview,
    GroupRequeued,
    preview,
    requeue_group,
)
from queue_core.people.outcomes import (
    Held,
    HoldingOutcome,
    Resolved,
    ResolveOutcome,
    Taken,
    TakeOutcome,
)
from queue_core.people.pulling import pull
from queue_core.people.resolving import MOST_NOTE, resolve, resolve_requeue
from queue_core.people.rights import (
    lanes_where_may,
    may,
    may_somewhere,
    on_lanes_of,
    require,
    require_somewhere,
)

__all__ = [
    "MOST_AT_ONCE",
    "MOST_HELD",
    "MOST_NOTE",
    "Group",
    "GroupOutcome",
    "GroupPreview",
    "GroupRequeued",
    "Held",
    "HoldingOutcome",
    "Reach",
    "ResolveOutcome",
    "Resolved",
    "Supply",
    "TakeOutcome",
    "Taken",
    "before_the_deadline",
    "extend",
    "give_back",
    "groups",
    "hand_over",
    "held_by",
    "holds_over",
    "lanes_where_may",
    "may",
    "may_somewhere",
    "on_lanes_of",
    "on_what",
    "open_items",
    "preview",
    "pull",
    "reach",
    "requeue_group",
    "require",
    "require_somewhere",
    "resolve",
    "resolve_requeue",
    "supply",
    "take",
    "take_next",
]

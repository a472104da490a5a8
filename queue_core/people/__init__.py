"""People's work: items taken, extended, given back, handed over, decided; DEAD jobs requeued; waiting ones pulled.

An assignment is to a person what a lease is to a worker: its own fence, its own key, its own end. Each verb checks the
permission, locks first (person, ticket, job, item), then reads the clock, then judges the locked row. A lost race is
a returned outcome; a caller's mistake is an exception of `queue_core.errors`.
"""

from queue_core.people.appeals import MOST_STATEMENT, appeal, may_be_appealed
from queue_core.people.assignments import extend, give_back, take, take_next
from queue_core.people.correcting import correct, may_correct
from queue_core.people.deciding import TAKE_BACK_FOR, is_in_the_way
from queue_core.people.desk import (
    Group,
    Reach,
    Supply,
    before_the_deadline,
    for_leads,
    groups,
    handed_to,
    held_by,
    holds_over,
    on_what,
    open_items,
    reach,
    supply,
    takeable,
)
from queue_core.people.eligibility import (
    DECIDE,
    LEAD,
    is_own_matter,
    may_work_on,
    open_to,
    rights_for,
    who_may_work_on,
)
from queue_core.people.grounds import KINDS_WITH_A_NOTE, in_use, keep_version
from queue_core.people.keeping import LiftOutcome, erase_content, lift, preserve
from queue_core.people.outcomes import (
    Appealed,
    AppealOutcome,
    Correcting,
    CorrectOutcome,
    Held,
    HoldingOutcome,
    Resolved,
    ResolveOutcome,
    TakeBackOutcome,
    Taken,
    TakenBack,
    TakeOutcome,
)
from queue_core.people.passing import escalate, escalate_item, hand_over, hand_over_item, skip
from queue_core.people.pulling import pull
from queue_core.people.resolving import MOST_NOTE, is_requeueable, resolve, resolve_requeue
from queue_core.people.restricting import lift_restriction, look, report, restrict_and_leave
from queue_core.people.rights import (
    lanes_where_may,
    may,
    may_somewhere,
    on_lanes_of,
    require,
    require_somewhere,
)
from queue_core.people.taking_back import take_back, to_take_back

__all__ = [
    "DECIDE",
    "KINDS_WITH_A_NOTE",
    "LEAD",
    "MOST_NOTE",
    "MOST_STATEMENT",
    "TAKE_BACK_FOR",
    "AppealOutcome",
    "Appealed",
    "CorrectOutcome",
    "Correcting",
    "Group",
    "Held",
    "HoldingOutcome",
    "LiftOutcome",
    "Reach",
    "ResolveOutcome",
    "Resolved",
    "Supply",
    "TakeBackOutcome",
    "TakeOutcome",
    "Taken",
    "TakenBack",
    "appeal",
    "before_the_deadline",
    "correct",
    "erase_content",
    "escalate",
    "escalate_item",
    "extend",
    "for_leads",
    "give_back",
    "groups",
    "hand_over",
    "hand_over_item",
    "handed_to",
    "held_by",
    "holds_over",
    "in_use",
    "is_in_the_way",
    "is_own_matter",
    "is_requeueable",
    "keep_version",
    "lanes_where_may",
    "lift",
    "lift_restriction",
    "look",
    "may",
    "may_be_appealed",
    "may_correct",
    "may_somewhere",
    "may_work_on",
    "on_lanes_of",
    "on_what",
    "open_items",
    "open_to",
    "preserve",
    "pull",
    "reach",
    "report",
    "require",
    "require_somewhere",
    "resolve",
    "resolve_requeue",
    "restrict_and_leave",
    "rights_for",
    "skip",
    "supply",
    "take",
    "take_back",
    "take_next",
    "takeable",
    "to_take_back",
    "who_may_work_on",
]

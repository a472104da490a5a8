"""Which bulk acts a list offers, and to whom."""

from collections.abc import Sequence

from queue_core import bulk
from queue_core.states import BulkKind
from reviewboard.models import Person

DESK, JOBS = "desk", "jobs"
#: What each list offers.
KINDS = {
    DESK: (BulkKind.REQUEUE, BulkKind.HAND_OVER, BulkKind.ESCALATE, BulkKind.REJECT),
    JOBS: (BulkKind.REQUEUE, BulkKind.PULL, BulkKind.MOVE_DEADLINES),
}


def offered(person: Person, source: str) -> Sequence[tuple[str, str]]:
    """The kinds of acts that a list offers to a person, with their names."""
    return [(kind.value, str(kind.label)) for kind in KINDS[source] if bulk.may_make(person, kind)]

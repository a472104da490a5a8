"""Evidence read by people: who may, and that each look is on record before it is shown."""

from collections.abc import Sequence

from django.http import HttpRequest

from queue_core import people
from queue_core.clock import DATABASE_CLOCK
from queue_core.models import Evidence, Item, ItemPass, Job, Lane
from queue_core.people import restricting
from queue_core.people.eligibility import RESTRICTED
from reviewboard.evidence_view import Content, content_of
from reviewboard.models import Person


def content_to_read(evidence: Evidence, person: Person, lane: Lane) -> Content | None:
    """What a page may show of itself. Restricted evidence never: that is asked for, with a purpose."""
    if evidence.is_restricted or not people.may(person, restricting.READ, lane):
        return None
    return content_of(evidence)


def may_read_words(person: Person, lane: Lane, *, is_restricted: bool) -> bool:
    """Whether a person may see what others wrote about a lane's evidence: they may have quoted it."""
    rights = [restricting.READ, *([RESTRICTED] if is_restricted else [])]
    return all(people.may(person, right, lane) for right in rights)


def with_words[R: Item | ItemPass](rows: Sequence[R], person: Person) -> list[tuple[R, bool]]:
    """Rows that carry `is_restricted`, each with whether this person may see what others wrote with it."""
    return [(row, may_read_words(person, row.lane, is_restricted=vars(row)["is_restricted"])) for row in rows]


def note_look(request: HttpRequest, subject: Item | Job, content: Content | None, person: Person) -> None:
    """One entry for each page that is opened; polls show nothing.

    The page after a refused act is the same look, but for whoever sent one to a page that they never opened.
    """
    if content is None or content.is_erased or request.method == "HEAD":
        return
    if request.method == "GET" or not restricting.was_read(subject, person=person):
        restricting.note_reading(subject, person=person, lane=subject.lane, clock=DATABASE_CLOCK)

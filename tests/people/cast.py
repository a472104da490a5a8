"""The people of the tests: Rita reviews, Leo leads, Vera only looks, Xavier may nothing."""

from django.contrib.auth.models import Permission

from queue_core import people
from queue_core.ledger.rules import rules
from queue_core.models import Assignment, Decision, Item, Job, Lane
from queue_core.people import Taken
from queue_core.states import AssignmentToken
from reviewboard.models import Person
from tests.factories import clock, done_job

REVIEWER = ("view_board", "view_evidence", "decide_item", "hold_lane")
LEAD = (*REVIEWER, "requeue_item", "pull_job", "raise_stage", "move_deadlines")


def person(name: str, *permissions: str) -> Person:
    somebody = Person.objects.create_user(name)
    somebody.user_permissions.set(
        Permission.objects.filter(content_type__app_label="queue_core", codename__in=permissions)
    )
    return somebody


def rita() -> Person:
    return person("rita", *REVIEWER)


def leo() -> Person:
    return person("leo", *LEAD)


def item_of(job: Job) -> Item:
    return Item.objects.get(job=job, closed_at__isnull=True)


def manual_item(lane: Lane, *, completed: float = 2, **fields: object) -> Item:
    return item_of(done_job(lane, result="MANUAL", completed=completed, **fields))


def take(item: Item, who: Person, *, when: float) -> AssignmentToken:
    taken: Taken = people.take(item.pk, person=who, clock=clock(when))
    assert taken.token is not None, taken.outcome
    return taken.token


def broken_rules() -> set[str]:
    """The ledger's rules about people's work that some row breaks."""
    about = [rule for rule in rules() if rule.model in (Assignment, Decision, Item)]
    return {rule.code for rule in about if rule.look(list(rule.model.objects.values_list("pk", flat=True)))}

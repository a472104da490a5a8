"""Rights everywhere and on named lanes."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import Group
from django.db import IntegrityError, transaction

from queue_core import people, roles
from queue_core.errors import NotPermitted
from queue_core.models import Lane, LaneRole
from reviewboard.models import Person
from tests.factories import make_lane

pytestmark = pytest.mark.django_db


def on_lane(person: Person, role: str, lane: Lane) -> Person:
    """The same person as another request reads them."""
    LaneRole.objects.create(person=person, role=Group.objects.get(name=role), lane=lane)
    return Person.objects.get(pk=person.pk)


def test_a_role_on_one_lane_gives_its_rights_there_and_nowhere_else(person: Callable[..., Person]) -> None:
    mine, other = make_lane(), make_lane()

    reviewer = on_lane(person(None), roles.REVIEWER, mine)

    assert people.may(reviewer, "decide_item", mine)
    assert people.may(reviewer, "decide_item", mine.pk)
    assert not people.may(reviewer, "decide_item", other)
    assert not people.may(reviewer, "decide_item")
    assert not people.may(reviewer, "raise_stage", mine)


def test_a_role_everywhere_holds_on_each_lane_and_without_one(person: Callable[..., Person]) -> None:
    lead, lane = person(roles.LEAD), make_lane()

    assert people.may(lead, "raise_stage", lane)
    assert people.may(lead, "raise_stage")
    assert people.lanes_where_may(lead, "raise_stage") is None


def test_the_lanes_of_a_right_are_those_where_some_role_gives_it(person: Callable[..., Person]) -> None:
    led, reviewed, unseen = make_lane(), make_lane(), make_lane()
    somebody = on_lane(on_lane(person(None), roles.LEAD, led), roles.REVIEWER, reviewed)

    assert people.lanes_where_may(somebody, "decide_item") == {led.pk, reviewed.pk}
    assert people.lanes_where_may(somebody, "raise_stage") == {led.pk}
    assert list(people.on_lanes_of(Lane.objects.order_by("pk"), somebody, "view_board", field="pk")) == [led, reviewed]
    assert unseen.pk not in (people.lanes_where_may(somebody, "view_board") or ())


def test_somewhere_is_enough_for_a_page_that_lists_lanes(person: Callable[..., Person]) -> None:
    somebody = on_lane(person(None), roles.VIEWER, make_lane())

    assert people.may_somewhere(somebody, "view_board")
    assert not people.may_somewhere(somebody, "decide_item")
    with pytest.raises(NotPermitted):
        people.require_somewhere(somebody, "decide_item")
    with pytest.raises(NotPermitted):
        people.require(somebody, "view_board")


def test_a_closed_account_may_nothing_on_its_lanes(person: Callable[..., Person]) -> None:
    lane = make_lane()

    gone = on_lane(person(None, is_active=False), roles.LEAD, lane)

    assert not people.may(gone, "view_board", lane)
    assert people.lanes_where_may(gone, "view_board") == frozenset()


def test_the_rights_on_lanes_are_read_once_a_request(
    person: Callable[..., Person], django_assert_num_queries: Callable[..., object]
) -> None:
    lanes = [make_lane() for _ in range(3)]
    somebody = on_lane(person(None), roles.REVIEWER, lanes[0])
    somebody.has_perm("queue_core.view_board")

    with django_assert_num_queries(1):  # type: ignore[attr-defined]
        for lane in lanes:
            people.may(somebody, "decide_item", lane)


def test_one_role_is_given_once_a_lane(person: Callable[..., Person]) -> None:
    somebody, lane = person(None), make_lane()
    on_lane(somebody, roles.REVIEWER, lane)

    with pytest.raises(IntegrityError), transaction.atomic():
        on_lane(somebody, roles.REVIEWER, lane)

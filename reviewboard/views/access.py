"""Getters with the permission in their names. Unknown and forbidden are the same answer: it does not exist here."""

from django.http import Http404, HttpRequest

from queue_core import people, where
from queue_core.models import Lane
from reviewboard.models import Person
from reviewboard.views.permits import person_of


def lanes_to_view(request: HttpRequest) -> list[Lane]:
    """Every lane, for those who may see the board, with the rows that its figures are made of."""
    _require(request, "view_board")
    return list(where.lanes_to_read().select_related("run__raised_by"))


def lane_to_view(request: HttpRequest, name: str) -> Lane:
    return _lane(request, name, "view_board")


def lane_to_hold(request: HttpRequest, name: str) -> Lane:
    return _lane(request, name, "hold_lane")


def lane_to_raise(request: HttpRequest, name: str) -> Lane:
    return _lane(request, name, "raise_stage")


def lane_to_recall(request: HttpRequest, name: str) -> Lane:
    """A lane of which one may recall decisions."""
    return _lane(request, name, "recall_decision")


def lane_to_judge_anew(request: HttpRequest, name: str) -> Lane:
    """A lane whose policy one may put into force."""
    return _lane(request, name, "force_policy")


def lane_to_declare_steady(request: HttpRequest, name: str) -> Lane:
    """A lane whose outage one may close."""
    return _lane(request, name, "manage_outage")


def may(request: HttpRequest, permission: str) -> bool:
    return people.may(person_of(request), permission)


def _lane(request: HttpRequest, name: str, permission: str) -> Lane:
    _require(request, permission)
    lane = where.lanes_to_read().select_related("run__raised_by", "hold__run").filter(name=name).first()
    if lane is None:
        raise Http404
    return lane


def _require(request: HttpRequest, permission: str) -> Person:
    person = person_of(request)
    if not people.may(person, permission):
        raise Http404
    return person

"""Getters with the permission in their names. Unknown and forbidden are the same answer: it does not exist here. That
somebody tried to act on what is there is on record all the same.

A permission may be everywhere or on named lanes: each getter asks about the lane of the very row that it returns.
"""

from collections.abc import Iterable

from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest

from queue_core import audit, people, ramp, relay, where
from queue_core.clock import DATABASE_CLOCK
from queue_core.models import Decision, Delivery, Endpoint, Item, Job, Lane, Outage
from queue_core.rights import may_on_each
from reviewboard.models import Person
from reviewboard.views.permits import person_of


def lanes_to_view(request: HttpRequest) -> list[Lane]:
    """The lanes that the reader may see, with the rows that their figures are made of."""
    lanes = where.lanes_to_read().select_related("run__raised_by")
    return list(people.on_lanes_of(lanes, _somewhere(request, "view_board"), "view_board", field="pk"))


def lanes_seen(request: HttpRequest, permission: str = "view_board") -> QuerySet[Lane]:
    """The lanes on which the reader has a permission, as they are named: for filters and lists."""
    return people.on_lanes_of(Lane.objects.order_by("name"), person_of(request), permission, field="pk")


def seen[M: Model](
    request: HttpRequest, rows: QuerySet[M], permission: str = "view_board", *, field: str = "lane_id"
) -> QuerySet[M]:
    """Those of `rows` whose lane the reader has the permission for."""
    return people.on_lanes_of(rows, person_of(request), permission, field=field)


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


def lane_to_try(request: HttpRequest, name: str) -> Lane:
    """A lane whose policies one may try a text on: a trial costs a call of its model."""
    lane = lane_to_view(request, name)
    if not any(may(request, permission, lane) for permission in TRIES):
        raise Http404
    return lane


#: Who may try a text on a policy.
TRIES = ("force_policy", "add_policy")


def lane_to_declare_steady(request: HttpRequest, name: str) -> Lane:
    """A lane whose outage one may close."""
    return _lane(request, name, "manage_outage")


def job_to_view(request: HttpRequest, pk: int) -> Job:
    return _job(request, pk, "view_board")


def job_to_move(request: HttpRequest, pk: int) -> Job:
    """A job whose deadline one may move."""
    return _job(request, pk, "move_deadlines")


def job_to_pull(request: HttpRequest, pk: int) -> Job:
    """A job that one may take out of the machine's hands, and decide."""
    return _job(request, pk, "pull_job", "decide_item")


def item_to_decide(request: HttpRequest, pk: int) -> Item:
    """An item that one may take and decide, with what its page shows."""
    return item_of_right(request, pk, "decide_item")


def item_of_right(request: HttpRequest, pk: int, *permissions: str) -> Item:
    """An item on whose lane the reader has each of these permissions."""
    rows = Item.objects.select_related("ticket", "lane", "job__evidence", "taken_by")
    return _on_its_lane(request, rows.filter(pk=pk).first(), *permissions)


def decision_to_correct(request: HttpRequest, pk: int) -> Decision:
    """A decision that one may look at anew as a lead."""
    return _on_its_lane(request, Decision.objects.filter(pk=pk).first(), "lead_desk")


def job_to_appeal(request: HttpRequest, pk: int) -> Job:
    """A job against whose decision one may enter an appeal."""
    return _job(request, pk, "appeal_decision")


def outage_to_view(request: HttpRequest, pk: int) -> Outage:
    """An outage of a connection all of whose lanes the reader may see: it is one record of them all."""
    return _outage(request, pk, "view_board")


def outage_to_keep(request: HttpRequest, pk: int) -> Outage:
    """An outage whose record the reader may keep: on all of its lanes."""
    return _outage(request, pk, "manage_outage")


def outages_seen(request: HttpRequest) -> QuerySet[Outage]:
    lanes = people.lanes_where_may(_somewhere(request, "view_board"), "view_board")
    rows = Outage.objects.all()
    if lanes is None:
        return rows
    # Connections of the reader's own lanes alone: few, as lanes are.
    others = Lane.objects.exclude(pk__in=lanes).values("connection")
    return rows.filter(connection__lanes__in=lanes).exclude(connection__in=others).distinct()


def may_keep_outage(request: HttpRequest, outage: Outage) -> bool:
    return may_on_each(person_of(request), "manage_outage", ramp.lanes_of_connection(outage.connection_id))


def delivery_to_manage(request: HttpRequest, pk: int) -> Delivery:
    rows = Delivery.objects.select_related("message", "endpoint", "ticket", "lane")
    return _on_its_lane(request, rows.filter(pk=pk).first(), "manage_deliveries")


def endpoint_to_manage(request: HttpRequest, pk: int) -> Endpoint:
    found = Endpoint.objects.filter(pk=pk).first()
    if found is None or not relay.is_of(person_of(request), found):
        raise not_there(request, found, "manage_deliveries")
    return found


def may(request: HttpRequest, permission: str, lane: Lane | int | None = None) -> bool:
    """On this lane; without one, on all of them."""
    return people.may(person_of(request), permission, lane)


def may_somewhere(request: HttpRequest, *permissions: str) -> bool:
    return any(people.may_somewhere(person_of(request), permission) for permission in permissions)


def lane_ids_seen(request: HttpRequest, permission: str = "view_board") -> frozenset[int] | None:
    """None: all of them."""
    return people.lanes_where_may(person_of(request), permission)


def named(lanes: Iterable[Lane]) -> list[str]:
    return [lane.name for lane in lanes]


def _lane(request: HttpRequest, name: str, permission: str) -> Lane:
    lane = where.lanes_to_read().select_related("run__raised_by", "hold__run").filter(name=name).first()
    if lane is None or not may(request, permission, lane):
        raise not_there(request, lane, permission, lane)
    return lane


def _job(request: HttpRequest, pk: int, *permissions: str) -> Job:
    rows = Job.objects.select_related("ticket", "lane", "evidence")
    return _on_its_lane(request, rows.filter(pk=pk).first(), *permissions)


def _on_its_lane[M: (Job, Item, Decision, Delivery)](request: HttpRequest, row: M | None, *permissions: str) -> M:
    """The row, if the reader has each of these permissions on its lane."""
    if row is None:
        raise Http404
    for permission in permissions:
        if not may(request, permission, row.lane_id):
            raise not_there(request, row, permission, row.lane)
    return row


def _outage(request: HttpRequest, pk: int, permission: str) -> Outage:
    rows = Outage.objects.select_related("connection", "opened_by", "closed_by", "lead_on_duty")
    found = rows.filter(pk=pk).first()
    if found is None or not may_on_each(person_of(request), permission, ramp.lanes_of_connection(found.connection_id)):
        raise not_there(request, found, permission)
    return found


def not_there(request: HttpRequest, row: Model | None, permission: str, lane: Lane | None = None) -> Http404:
    """The answer about a row that one has no permission for, which is the one about a row that does not exist.

    Where it is there and the request was to do something, the audit says who tried and what they lack.
    """
    if row is not None and request.method not in ("GET", "HEAD"):
        note_denied(request, row, permission, lane)
    return Http404()


def note_denied(request: HttpRequest, row: Model, permission: str, lane: Lane | None = None) -> None:
    """Put on record that the reader tried to act on a row without this permission."""
    now, person = DATABASE_CLOCK.now(), person_of(request)
    audit.record("act.denied", now=now, actor=person, subject=row, lane=lane, after={"right": permission})


def _somewhere(request: HttpRequest, permission: str) -> Person:
    person = person_of(request)
    if not people.may_somewhere(person, permission):
        raise Http404
    return person

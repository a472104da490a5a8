"""The record of an outage: one for a connection, opened by the machine or by hand, closed by a lead."""

import pytest

from queue_core import ramp
from queue_core.errors import InvalidRequest, NotPermitted
from queue_core.models import Message, Outage
from queue_core.states import HoldReason
from reviewboard.models import Person
from tests.factories import at, clock
from tests.ramp.stories import WHY, again, fail, pull, raise_, running

pytestmark = pytest.mark.django_db


def entries(outage: Outage) -> list[tuple[str, str | None]]:
    return [(entry.code, entry.lane.name if entry.lane else None) for entry in outage.entries.all()]


def test_two_lanes_of_a_connection_have_one_outage(lead: Person) -> None:
    first = running(lead, unavailable_limit=1)
    second = running(lead, unavailable_limit=1, connection=first.connection)

    fail(first, "unavailable", when=90)
    fail(second, "misconfigured", when=95, detail="the key was refused")

    outage = Outage.objects.get()
    assert (outage.cause, outage.opened_at) == ("auto_unavailable", at(90))
    assert entries(outage) == [("opened", None), ("held", first.name), ("held", second.name)]
    assert Message.objects.filter(kind="outage.opened").count() == 1


def test_every_act_at_the_ramp_is_a_line_in_the_open_outages_log(lead: Person) -> None:
    lane = running(lead, unavailable_limit=1)
    fail(lane, "unavailable", when=90)
    raise_(lane, lead, when=100)
    raise_(lane, lead, when=110, override_reason="we are in a hurry")
    ramp.set_cap(lane.pk, person=lead, cap=3, reason=WHY, clock=clock(120))
    ramp.step_down(lane.pk, person=lead, to=1, reason=WHY, clock=clock(130))
    pull(lane, lead, when=140)
    ramp.resume(lane.pk, person=lead, reason=WHY, clock=clock(150))

    codes = [code for code, _lane in entries(Outage.objects.get())]

    assert codes == ["opened", "held", "raised", "raised", "cap_set", "stepped_down", "held", "resumed"]


def test_a_persons_hold_opens_no_outage(lead: Person) -> None:
    lane = running(lead)

    pull(lane, lead, when=90)

    assert not Outage.objects.exists()


def test_a_lead_closes_it_when_all_its_lanes_run_their_last_stage(lead: Person) -> None:
    lane = running(lead, unavailable_limit=1)
    fail(lane, "unavailable", when=90)
    outage = Outage.objects.get()
    raise_(lane, lead, when=100)

    early = ramp.close_outage(outage.pk, person=lead, reason=WHY, clock=clock(110))
    for when in (120, 130):
        raise_(lane, lead, when=when, override_reason="we are in a hurry")
    closed = ramp.close_outage(outage.pk, person=lead, reason=WHY, clock=clock(140))
    repeated = ramp.close_outage(outage.pk, person=lead, reason=WHY, clock=clock(150))

    outage.refresh_from_db()
    assert (early.outcome, early.lanes) == ("not_steady", (lane,))
    assert (closed.outcome, outage.closed_at, outage.closed_by) == ("closed", at(140), lead)
    assert repeated.outcome == "already_closed"
    assert entries(outage)[-1] == ("closed", None)
    assert Message.objects.get(kind="outage.closed").body["lanes"] == [lane.name]


def test_the_next_hold_after_it_was_closed_opens_another(lead: Person) -> None:
    lane = running(lead, unavailable_limit=1)
    fail(lane, "unavailable", when=90)
    for when in (100, 120, 130):
        raise_(lane, lead, when=when, override_reason="we are in a hurry")
    ramp.close_outage(Outage.objects.get().pk, person=lead, reason=WHY, clock=clock(140))

    fail(lane, "unavailable", when=150)

    assert again(lane).hold.reason == "auto_unavailable"
    assert Outage.objects.filter(closed_at__isnull=True).get().opened_at == at(150)


def test_one_opened_by_hand_names_its_opener_and_holds_nothing(lead: Person) -> None:
    lane = running(lead)
    opening = {"person": lead, "cause": HoldReason.MODEL_TROUBLE, "reason": WHY}

    opened = ramp.open_outage(lane.connection_id, clock=clock(90), **opening)
    second = ramp.open_outage(lane.connection_id, clock=clock(91), **opening)

    assert (opened.outcome, opened.outage.opened_by, opened.outage.lead_on_duty) == ("opened", lead, lead)
    assert (second.outcome, second.outage) == ("already_open", opened.outage)
    assert again(lane).run == lane.run


def test_the_lanes_of_an_outage_are_those_its_log_names(lead: Person) -> None:
    first = running(lead, unavailable_limit=1)
    second = running(lead, unavailable_limit=1, connection=first.connection)
    running(lead)
    for number in range(2):
        fail(first, "unavailable", when=90 + 20 * number)
        raise_(first, lead, when=100 + 20 * number)
    fail(second, "misconfigured", when=95, detail="the key was refused")
    outage = Outage.objects.get()

    found = ramp.lanes_of([outage.pk, 0])

    assert {pk: set(lanes) for pk, lanes in found.items()} == {outage.pk: {first, second}, 0: set()}
    assert [ramp.is_steady(lane) for lane in found[outage.pk]] == [False, False]


def test_opening_and_closing_need_the_right_and_a_reason(lead: Person, reviewer: Person) -> None:
    lane = running(lead, unavailable_limit=1)
    fail(lane, "unavailable", when=90)
    outage = Outage.objects.get()

    with pytest.raises(NotPermitted):
        ramp.close_outage(outage.pk, person=reviewer, reason=WHY, clock=clock(100))
    with pytest.raises(NotPermitted):
        ramp.open_outage(lane.connection_id, person=reviewer, cause=HoldReason.PRECAUTION, reason=WHY, clock=clock(100))
    with pytest.raises(InvalidRequest):
        ramp.close_outage(outage.pk, person=lead, reason="ok", clock=clock(100))
    with pytest.raises(InvalidRequest):
        ramp.open_outage(lane.connection_id, person=lead, cause=HoldReason.AUTO_ERRORS, reason=WHY, clock=clock(100))

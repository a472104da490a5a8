"""A version of the policy put into force, and an outage declared over, from the lane's page."""

from datetime import timedelta

import pytest
from django.urls import reverse

from queue_core import ramp, roles
from queue_core.clock import DATABASE_CLOCK
from queue_core.models import AuditEntry, Lane, Outage, Policy, ReasonCode, StageRun
from queue_core.policy import Rule
from queue_core.states import HoldReason
from reviewboard.lane_policy import rule_text
from reviewboard.models import Person
from tests.board.scene import RULES, a_lane, break_down, fill, start
from tests.lane.test_lane import HTMX, fresh, page, post, text

pytestmark = pytest.mark.django_db


def another_version(lane: Lane, version: int = 2, reject_at: float = 0.9) -> Policy:
    rules = [RULES[0] | {"reject_at": reject_at}]
    return Policy.objects.create(lane=lane, version=version, rules=rules, note="milder", made_at=DATABASE_CLOCK.now())


def policy_data(lane: Lane, version: Policy, **fields: object) -> dict[str, object]:
    data = {"policy-to": version.pk, "policy-replaces": lane.policy_id, "policy-reason": "too many false alarms"}
    return data | fields


def an_outage(lane: Lane, leo) -> Outage:
    outage = ramp.open_outage(
        lane.connection_id, person=leo, cause=HoldReason.MODEL_TROUBLE, reason="it answers slowly", clock=DATABASE_CLOCK
    )
    return outage.outage


# --- The policy -------------------------------------------------------------------------------------------------------


def test_everybody_sees_which_version_is_in_force_and_its_rules_in_words(client, vera) -> None:
    lane = a_lane("posts")
    client.force_login(vera)

    shown = text(page(client, lane))

    assert "Version 1 is in force" in shown
    assert "offensive: reject at 0.85 (insult), approve below 0.45" in shown
    assert "Put version" not in shown


def test_a_version_put_into_force_begins_a_new_run_at_the_same_cap(client, leo) -> None:
    lane = start(a_lane("posts"), leo)
    before, version = fresh(lane), another_version(lane)
    client.force_login(leo)

    answer = post(client, "lane_policy", before, policy_data(before, version))

    after = fresh(lane)
    assert answer.status_code == 302
    assert (after.policy_id, after.cap) == (version.pk, before.cap)
    assert after.run_id != before.run_id
    assert StageRun.objects.get(pk=after.run_id).policy_id == version.pk
    assert AuditEntry.objects.filter(act="policy.forced", reason="too many false alarms").count() == 1


def test_a_version_chosen_beside_another_one_is_told_and_changes_nothing(client, leo) -> None:
    lane = a_lane("posts")
    shown, second, third = fresh(lane), another_version(lane), another_version(lane, 3, 0.95)
    client.force_login(leo)
    assert post(client, "lane_policy", shown, policy_data(shown, second)).status_code == 302

    answer = post(client, "lane_policy", shown, policy_data(shown, third))

    assert answer.status_code == 409
    assert fresh(lane).policy_id == second.pk
    assert "too many false alarms" in text(answer)


def test_a_version_without_a_reason_is_refused_by_its_field(client, leo) -> None:
    lane = a_lane("posts")
    client.force_login(leo)

    answer = post(client, "lane_policy", lane, policy_data(lane, another_version(lane), **{"policy-reason": ""}))

    assert answer.status_code == 422
    assert fresh(lane).policy_id == lane.policy_id


@pytest.mark.parametrize("sent", ["", "x", "9" * 40, "-1"])
def test_a_version_that_is_none_or_another_lanes_does_not_exist(client, leo, sent) -> None:
    lane, other = a_lane("posts"), a_lane("reviews")
    client.force_login(leo)

    assert post(client, "lane_policy", lane, {"policy-to": sent}).status_code == 404
    assert post(client, "lane_policy", lane, policy_data(lane, another_version(other))).status_code == 404


def test_a_version_put_into_force_on_hold_rules_from_the_next_run_on(client, leo) -> None:
    lane = a_lane("posts")
    version = another_version(lane)
    client.force_login(leo)
    assert "rules from the next run on" in text(page(client, lane))

    answer = post(client, "lane_policy", lane, policy_data(lane, version), **HTMX)

    assert answer.headers["HX-Redirect"] == reverse("lane", args=["posts"])
    assert (fresh(lane).policy_id, fresh(lane).run) == (version.pk, None)
    shown = text(page(client, lane))
    assert "Version 2 of the policy is in force from the next run on." in shown
    assert "put version 2 of the policy into force" in shown


def test_a_running_lane_says_what_another_version_does_to_it(client, leo) -> None:
    lane = start(a_lane("posts"), leo, stages=2)
    another_version(lane)
    client.force_login(leo)

    shown = text(page(client, lane))

    assert "A new run begins (stage 2, trickle) at the same cap of 10 calls at once, and soaks again." in shown
    assert "Put version 2 into force" in shown
    assert "milder" in shown


def test_a_mistake_opens_the_form_of_its_own_version_only(client, leo) -> None:
    lane = a_lane("posts")
    another_version(lane)
    third = another_version(lane, 3)
    client.force_login(leo)

    answer = post(client, "lane_policy", lane, policy_data(lane, third, **{"policy-reason": "ok"}), **HTMX)

    assert answer.status_code == 422
    assert [one.version for one, form in answer.context["policy_choices"] if form.errors] == [3]


def test_a_version_whose_ground_was_retired_has_no_form_and_is_refused(client, leo) -> None:
    lane = a_lane("posts")
    version = another_version(lane)
    ReasonCode.objects.filter(code="insult").update(is_active=False)
    client.force_login(leo)
    shown = text(page(client, lane))
    assert "These rules cannot be put into force" in shown
    assert "Put version 2 into force" not in shown

    answer = post(client, "lane_policy", lane, policy_data(lane, version))

    assert answer.status_code == 422
    assert "There is no reason code" in text(answer)
    assert fresh(lane).policy_id == lane.policy_id


def test_only_an_administrator_is_led_to_where_versions_are_made(client, leo, cast) -> None:
    lane, ada = a_lane("posts"), cast("ada", roles.ADMINISTRATOR)
    Person.objects.filter(pk=ada.pk).update(is_staff=True)
    address = f"{reverse('admin:queue_core_policy_add')}?lane={lane.pk}"
    client.force_login(leo)
    assert address not in text(page(client, lane))
    client.force_login(Person.objects.get(pk=ada.pk))

    assert address in text(page(client, lane))
    assert client.get(address).status_code == 200


def test_a_rule_without_a_ground_is_said_to_reject_nothing() -> None:
    assert rule_text(Rule("toxic", 0.9, 0.3)) == "toxic: to people from 0.3, never rejected by the model"


# --- The outage -------------------------------------------------------------------------------------------------------


def test_an_outage_is_not_closed_before_its_lanes_run_steadily(client, leo) -> None:
    lane = start(a_lane("posts"), leo)
    fill(lane, 10, waited=timedelta(hours=1))
    break_down(lane)
    outage = Outage.objects.get(connection=lane.connection)
    client.force_login(leo)

    answer = post(client, "outage_close", lane, {"outage-outage": outage.pk, "outage-reason": "all is well"})

    outage.refresh_from_db()
    assert answer.status_code == 409
    assert outage.closed_at is None
    assert "It can be closed when every lane of it runs its last stage." in text(page(client, lane))


def test_an_outage_is_closed_once_when_its_lanes_run_steadily(client, leo) -> None:
    lane = start(a_lane("posts"), leo, stages=4)
    outage = an_outage(lane, leo)
    client.force_login(leo)
    data = {"outage-outage": outage.pk, "outage-reason": "all is well"}

    assert "Close the outage" in text(page(client, lane))
    assert post(client, "outage_close", lane, data).status_code == 302
    again = post(client, "outage_close", lane, data)

    outage.refresh_from_db()
    assert outage.closed_by == leo
    assert again.status_code == 409
    assert AuditEntry.objects.filter(act="outage.closed").count() == 1


def test_another_connections_outage_does_not_exist_for_a_lane(client, leo) -> None:
    lane, other = a_lane("posts"), start(a_lane("reviews"), leo, stages=4)
    outage = an_outage(other, leo)
    client.force_login(leo)

    assert post(client, "outage_close", lane, {"outage-outage": outage.pk, "outage-reason": "well"}).status_code == 404


def test_the_record_of_an_outage_names_its_lanes_and_what_was_done(client, vera, leo) -> None:
    lane = start(a_lane("posts"), leo)
    fill(lane, 10, waited=timedelta(hours=1))
    break_down(lane)
    outage = Outage.objects.get(connection=lane.connection)
    client.force_login(vera)

    listed = client.get(reverse("outages"))
    shown = client.get(reverse("outage", args=[outage.pk]))

    assert reverse("outage", args=[outage.pk]) in listed.content.decode()
    assert "posts" in text(shown)
    assert "the model was unavailable" in text(shown)
    assert b"<form" not in shown.content.split(b"<main")[1].split(b"</main")[0]


def test_outages_are_for_those_who_may_see_the_board(client, xavier) -> None:
    assert client.get(reverse("outages")).status_code == 302
    client.force_login(xavier)

    assert client.get(reverse("outages")).status_code == 404
    assert client.get(reverse("outage", args=[1])).status_code == 404
    assert client.get("/outages/99999999999999999999/").status_code == 404

"""Lanes made: by hand, by the admin's form and by an import."""

from dataclasses import replace

import pytest

from queue_core import contract, lanes
from queue_core.errors import ConfigurationFault, InvalidRequest
from queue_core.lanes import DEFAULT_STAGES
from queue_core.models import AuditEntry, Lane, ModelConnection, Policy, Stage
from reviewboard.models import Person
from tests.factories import at, clock, make_connection, waiting_job
from tests.ramp.stories import RULES, raise_

pytestmark = pytest.mark.django_db


def make(name: str = "posts", **words: object) -> Lane:
    connection = words.pop("connection", None) or make_connection(kind="local")
    return lanes.create_lane(name, connection, clock=clock(7), **words)


def test_a_lane_is_made_on_hold_with_a_policy_and_a_plan(lead: Person) -> None:
    lane = make(title="Posts", person=lead, max_attempts=5)

    lane.refresh_from_db()
    assert (lane.title, lane.max_attempts, lane.run, lane.cap) == ("Posts", 5, None, None)
    assert (lane.hold.reason, lane.hold.is_automatic, lane.hold.started_at) == ("new_lane", True, at(7))
    assert (lane.policy.version, lane.policy.made_by) == (1, lead)
    assert list(lane.stages.values_list("number", "cap")) == [(1, 2), (2, 10), (3, 50), (4, 200)]
    assert AuditEntry.objects.get(act="lane.created").actor == lead


def test_nothing_of_a_new_lane_is_claimed_before_a_lead_starts_its_probe(lead: Person) -> None:
    lane = make()
    job = waiting_job(lane, added=8)

    assert contract.claim(job.pk, clock=clock(9), worker="w1").outcome == "on_hold"
    assert raise_(lane, lead, when=10).outcome == "raised"
    assert contract.claim(job.pk, clock=clock(11), worker="w1").outcome == "claimed"


def test_a_default_stage_is_conclusive_once_it_is_soaked() -> None:
    for stage in DEFAULT_STAGES[:-1]:
        assert stage.least_sample <= stage.soak_completions


@pytest.mark.parametrize("name", ["", "Posts", "-posts", "posts-", "po sts", "p" * 65, "posts\n", "posts\x00"])
def test_a_name_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        make(name)

    assert refused.value.field == "name"
    assert not Lane.objects.exists()


def test_a_name_that_is_taken_is_refused_and_the_first_lane_stays() -> None:
    first = make()

    with pytest.raises(InvalidRequest) as refused:
        make()

    assert refused.value.field == "name"
    assert (Lane.objects.get(), Policy.objects.count(), Stage.objects.count()) == (first, 1, 4)


def test_a_plan_with_a_gap_or_without_a_probe_is_refused() -> None:
    for stages in ((), DEFAULT_STAGES[1:], (DEFAULT_STAGES[0], DEFAULT_STAGES[2])):
        with pytest.raises(InvalidRequest) as refused:
            make(stages=stages)
        assert refused.value.field == "stages"
    assert make(stages=(DEFAULT_STAGES[0], replace(DEFAULT_STAGES[3], number=2))).stages.count() == 2


def test_broken_rules_are_refused_and_leave_nothing() -> None:
    with pytest.raises(InvalidRequest) as refused:
        make(policy_rules=[{"category": "offensive", "reject_at": 2, "approve_below": 0.4}])

    assert refused.value.field == "policy"
    assert not Lane.objects.exists()


def test_a_kind_without_usual_rules_needs_rules() -> None:
    connection = make_connection(kind="http")

    with pytest.raises(InvalidRequest) as refused:
        make(connection=connection)

    assert refused.value.field == "policy"
    assert make(connection=connection, policy_rules=RULES).policy.rules == RULES


def test_a_lane_saved_by_a_form_is_adopted_on_hold(lead: Person) -> None:
    local = Lane.objects.create(name="by-form", connection=make_connection(kind="local"))
    other = Lane.objects.create(name="by-form-too", connection=make_connection(kind="http"))

    for lane in (local, other):
        lanes.adopt(lane, person=lead, now=at(5))

    assert [lane.hold.reason for lane in (local, other)] == ["new_lane", "new_lane"]
    assert (local.policy.version, other.policy) == (1, None)


class TestForImport:
    def make(self, name: str = "posts", connection: str | None = None) -> Lane:
        return lanes.create_lane_for_import(name, connection=connection, clock=clock(7))

    def test_with_no_connection_a_local_one_is_made_once(self) -> None:
        first, second = self.make("posts"), self.make("reviews")

        assert first.connection == second.connection == ModelConnection.objects.get()
        assert (first.connection.kind, first.hold.reason) == ("local", "new_lane")

    def test_with_one_connection_it_is_taken(self) -> None:
        only = make_connection(kind="local")

        assert self.make().connection == only

    def test_with_several_one_has_to_be_named(self) -> None:
        make_connection(kind="local")
        named = make_connection(kind="local")

        with pytest.raises(ConfigurationFault, match="--connection"):
            self.make()
        with pytest.raises(ConfigurationFault, match="nowhere"):
            self.make(connection="nowhere")
        assert self.make(connection=named.name).connection == named

    def test_a_kind_without_usual_rules_is_a_fault_of_configuration(self) -> None:
        make_connection(kind="http")

        with pytest.raises(ConfigurationFault):
            self.make()
        assert not Lane.objects.exists()

    def test_a_lane_that_is_there_by_now_is_returned(self) -> None:
        assert self.make() == self.make()

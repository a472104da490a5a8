"""A new lane begins with a policy that its model can be judged by, whatever wire that speaks."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from queue_core import lanes, roles
from queue_core.admin.policies import PolicyForm
from queue_core.clock import DATABASE_CLOCK
from queue_core.drain import drain
from queue_core.models import Job, ModelConnection, Policy, ReasonCode
from queue_core.policy import Policy as Rules
from queue_core.usual_policies import usual_policy
from reviewboard.model_server import RunningServer
from reviewboard.models import Person
from tests.connections.wires import WIRES, row
from tests.factories import make_connection, make_run
from tests.workers.conftest import receive

pytestmark = pytest.mark.django_db

#: What a good, a bad and a doubtful text end as under each kind's usual policy.
PLAIN = ["APPROVED", "REJECTED", "MANUAL"]
ENDS = {
    "openai-decisions": PLAIN,
    "openai-moderations": PLAIN,
    "systemone": PLAIN,
    # What its scores mean, only its maker knows.
    "http": ["MANUAL"] * 3,
}


@pytest.fixture(autouse=True)
def _long_slice(settings: Any) -> None:
    settings.QUEUE_CORE_DRAIN_SLICE = timedelta(minutes=2)


def connection_of(kind: str, url: str = "http://127.0.0.1:9") -> ModelConnection:
    made = ModelConnection(name="local", kind="local") if kind == "local" else row(kind, url)
    made.save()
    return made


@pytest.mark.parametrize("kind", ["local", *WIRES])
def test_the_usual_policy_of_each_kind_passes_the_check_of_the_policys_own_form(kind: str) -> None:
    lane = lanes.create_lane("posts", connection_of(kind), clock=DATABASE_CLOCK)
    assert lane.policy is not None
    unbound = PolicyForm(initial={"rules": lane.policy.rules, "questions": lane.policy.questions})
    sent = {name: unbound[name].value() for name in ("rules", "questions")}

    form = PolicyForm(sent | {"lane": lane.pk, "note": ""})

    assert form.is_valid(), form.errors
    assert form.cleaned_data["rules"] == lane.policy.rules


@pytest.mark.parametrize("kind", ENDS)
def test_a_new_lane_judges_as_it_was_made(kind: str, model: RunningServer) -> None:
    lane = lanes.create_lane("posts", connection_of(kind, model.url), clock=DATABASE_CLOCK)
    lane.run, lane.cap, lane.hold, lane.judged_at = make_run(lane), 10, None, DATABASE_CLOCK.now()
    lane.save()
    jobs = receive(lane, "Good morning.", "you idiot", "[[p=0.6]]")

    drain(lane.pk, task="t1", worker="w1", clock=DATABASE_CLOCK)

    assert [Job.objects.get(pk=job.pk).result for job in jobs] == ENDS[kind]


def test_a_ground_that_was_retired_rejects_nobody() -> None:
    ReasonCode.objects.filter(code="insult").update(is_active=False)

    usual = usual_policy(connection_of("systemone"))

    assert usual is not None
    grounds = {rule.category: rule.reason_code for rule in Rules.from_rules(usual.rules).rules}
    assert (grounds["insult"], grounds["threat"]) == (None, "threat")


def test_a_kind_that_does_not_tell_its_scores_has_no_usual_policy() -> None:
    assert usual_policy(make_connection(kind="http", options={})) is None


def test_the_form_of_a_new_version_begins_as_the_lanes_newest_or_as_the_usual_one(client: Client) -> None:
    ada = Person.objects.create_user("ada", is_staff=True)
    roles.assign(ada, roles.ADMINISTRATOR)
    client.force_login(ada)
    lane = lanes.create_lane("posts", connection_of("systemone"), clock=DATABASE_CLOCK)
    url = reverse("admin:queue_core_policy_add")

    sent_on = client.post(url, {"lane": lane.pk, "_fill_in": "1"})
    usual = client.get(sent_on["Location"]).content.decode()
    Policy.objects.create(lane=lane, version=2, rules=[{"category": "mine"}], made_at=DATABASE_CLOCK.now())
    newest = client.get(sent_on["Location"]).content.decode()

    assert "The post threatens somebody" in usual
    assert "mine" not in usual
    assert "mine" in newest
    for odd in ("x", "-1", "9" * 30, "²", ""):
        assert client.get(url, {"lane": odd}).status_code == 200

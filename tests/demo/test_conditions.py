"""What the demo does while it runs: tickets come in, and a condition that was set is seen at once."""

from random import Random

import pytest
from django.test import override_settings

from queue_core import health, wakeups
from queue_core.clock import DATABASE_CLOCK
from queue_core.connections import kinds
from queue_core.connections.local import LocalConnection
from queue_core.models import Job, Lane, ModelConnection
from reviewboard.demo import arrivals, conditions
from reviewboard.demo.strip import LOOK_AT
from reviewboard.demo.texts import posts
from reviewboard.models import DemoModel
from tests.board.scene import a_lane

pytestmark = pytest.mark.django_db

Condition = DemoModel.Condition
DEMO = {"demo": "reviewboard.demo.connection.build"}


@pytest.fixture
def model() -> ModelConnection:
    return ModelConnection.objects.create(name="posts-model", kind="demo", address="demo")


@pytest.fixture
def sent(monkeypatch) -> list[tuple]:
    messages: list[tuple] = []
    monkeypatch.setattr(wakeups, "_send", lambda task, *args: messages.append((task, *args)))
    monkeypatch.setattr(wakeups, "_is_due", lambda _key: True)
    return messages


@override_settings(QUEUE_CORE_CONNECTIONS=DEMO)
def test_a_condition_shows_in_the_health_check_at_once(model, sent, monkeypatch, django_capture_on_commit_callbacks):
    monkeypatch.setattr(LocalConnection, "prepare", lambda _self: None)
    DemoModel.objects.create(connection=model, condition=Condition.SLOW, changed_at=DATABASE_CLOCK.now())
    assert health.check_all(clock=DATABASE_CLOCK) == 1
    assert health.check_all(clock=DATABASE_CLOCK) == 0, "not due for eight seconds"

    with django_capture_on_commit_callbacks(execute=True):
        conditions.set_condition(ModelConnection.objects.filter(kind="demo"), Condition.DOWN)

    assert sent == [("queue_core.tasks.health",)]
    assert health.check_all(clock=DATABASE_CLOCK) == 1
    model.refresh_from_db()
    assert (model.health_is_good, "down" in model.health_detail) == (False, True)


def test_every_condition_that_shows_something_says_where_to_look():
    assert set(LOOK_AT) == set(Condition) - {Condition.UP}


def test_a_model_that_obeys_is_offered_in_the_demo_only():
    assert "demo" not in kinds()
    with override_settings(QUEUE_CORE_CONNECTIONS=DEMO):
        assert "demo" in kinds()


def test_tickets_come_in_until_too_many_wait(sent, monkeypatch):
    lane = a_lane("posts", title="Posts")
    monkeypatch.setattr(arrivals, "MOST_WAITING", 3)

    brought = [arrivals.bring("posts", text, Random(1), clock=DATABASE_CLOCK) for text in posts()[:5]]

    assert brought == [1, 1, 1, 0, 0]
    assert Job.objects.filter(lane=lane, state="WAITING").count() == 3
    assert arrivals.bring("reviews", posts()[0], Random(1), clock=DATABASE_CLOCK) == 0
    assert Lane.objects.count() == 1

"""Run by test_embedding in a process of its own: another project, where `reviewboard` cannot be imported."""

import importlib.util
import json
import os
import sys

import django

os.environ["DJANGO_SETTINGS_MODULE"] = "shop.settings"
django.setup()

# ruff: isort: off
from django.core.management import call_command  # noqa: E402
from django.db import connection  # noqa: E402
from django.test import Client  # noqa: E402

from queue_core import contract, tasks  # noqa: E402
from queue_core.batch import claim_next  # noqa: E402
from queue_core.clock import DATABASE_CLOCK  # noqa: E402
from queue_core.contract import Ending  # noqa: E402
from queue_core.lanes import create_lane  # noqa: E402
from queue_core.models import Attempt, Decision, Job, Message, ModelConnection, StageRun  # noqa: E402
from queue_core.states import CompleteOutcome  # noqa: E402
from shop.celery import app  # noqa: E402
from shop.models import Review  # noqa: E402


def run_lane() -> None:
    """A lane that claims, set up as a lead's raise would leave it."""
    lane = create_lane("reviews", ModelConnection.objects.create(name="local", kind="local"), clock=DATABASE_CLOCK)
    now = DATABASE_CLOCK.now()
    stage = lane.stages.get(number=1)
    frozen = ("number", "name", "cap", "soak_completions", "soak_time", "window", "least_sample")
    ratios = ("max_error_ratio", "max_timeout_ratio", "max_stale_ratio")
    lane.run = StageRun.objects.create(
        lane=lane, connection=lane.connection, connection_snapshot={}, lease=lane.lease, policy=lane.policy,
        reason="for the test", figures={}, started_at=now,
        **{name: getattr(stage, name) for name in (*frozen, *ratios)},
    )  # fmt: skip
    lane.hold, lane.cap, lane.judged_at = None, stage.cap, now
    lane.save()


def send(text: str) -> Job:
    answer = Client().post("/reviews/", json.dumps({"text": text}), content_type="application/json").json()
    return Job.objects.get(pk=answer["job"])


def prove() -> None:
    run_lane()
    kept, lost = send("Fine shoes"), send("Lost shoes")
    assert (kept.state, lost.state) == ("WAITING", "WAITING")

    first = contract.claim(kept.pk, clock=DATABASE_CLOCK, worker="w")
    assert first.token is not None, first
    ended = contract.complete(first.token, Ending("APPROVED"), clock=DATABASE_CLOCK)
    assert ended == CompleteOutcome.COMMITTED, ended
    assert Review.objects.get(pk=kept.ticket.external_id).is_shown
    assert Message.objects.filter(kind="decision").count() == 1

    Review.objects.filter(pk=lost.ticket.external_id).delete()
    [second] = claim_next(lost.lane_id, 1, clock=DATABASE_CLOCK, worker="w").claims
    assert second.token is not None
    try:
        contract.complete(second.token, Ending("APPROVED"), clock=DATABASE_CLOCK)
    except Review.DoesNotExist:
        pass
    else:
        raise AssertionError("the receiver's error was swallowed")
    lost.refresh_from_db()
    assert (lost.state, Decision.objects.count(), Message.objects.filter(kind="decision").count()) == ("LEASED", 1, 1)
    assert Attempt.objects.get(job=lost).ended_at is None


def main() -> None:
    for name in ("reviewboard", "django_htmx", "axes"):
        assert name not in sys.modules, name
    assert importlib.util.find_spec("reviewboard") is None
    call_command("check")
    call_command("makemigrations", "queue_core", check=True, dry_run=True, verbosity=0)
    assert {tasks.tick.name, tasks.drain.name} <= set(app.tasks)
    before = connection.creation.create_test_db(verbosity=0, autoclobber=True)
    try:
        prove()
    finally:
        connection.creation.destroy_test_db(before, verbosity=0)
    assert "reviewboard" not in sys.modules
    sys.stdout.write("PROVED\n")


main()

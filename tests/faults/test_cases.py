"""Cases that need no process to be killed: what cannot happen by construction is shown so."""

import ast
import re
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from celery.schedules import schedule
from django.conf import settings
from django.db import transaction

from queue_core import contract
from queue_core.clock import DATABASE_CLOCK
from queue_core.drain import drain
from queue_core.models import Attempt, Decision, Drainer, Job, Lane, Message, Presence, Ticket
from queue_core.states import AttemptOutcome
from reviewboard.celery import app
from tests.workers.conftest import make_staged_lane, receive
from tests.workers.processes import ROOT
from tests.workers.staged import Stage

pytestmark = pytest.mark.django_db


def run(lane: Lane, task: str = "t") -> None:
    drain(lane.pk, task=task, worker="w", clock=DATABASE_CLOCK)


def let_rest_be_over(*jobs: Job) -> None:
    Job.objects.filter(pk__in=[job.pk for job in jobs]).update(available_at=DATABASE_CLOCK.now())
    contract.wake_due(clock=DATABASE_CLOCK)


@pytest.fixture
def lane(stage: Stage, staged_settings: None, monkeypatch: pytest.MonkeyPatch) -> Lane:
    monkeypatch.setattr("queue_core.wakeups._send", lambda *_: None)
    return make_staged_lane(stage, max_attempts=50)


def test_a_due_attempt_runs_once_however_many_messages_come_for_it(lane: Lane, stage: Stage) -> None:
    """CEL-01: the retry is a time in a row. Six messages for it, before and after it is due, make one call."""
    [job] = receive(lane, "fine")
    stage.set("invalid")
    run(lane)
    stage.set("up")
    for number in range(3):
        run(lane, f"early-{number}")
    let_rest_be_over(job)
    for number in range(3):
        run(lane, f"late-{number}")

    job.refresh_from_db()
    assert (job.state, job.attempts, job.fence, len(stage.calls())) == ("DONE", 2, 2, 2)
    assert Decision.objects.count() == 1


def python_of(*folders: str) -> list[Path]:
    return [path for folder in folders for path in (ROOT / folder).rglob("*.py") if "migrations" not in path.parts]


def test_no_message_waits_in_a_worker_for_its_time() -> None:
    """CEL-01: a task with a countdown or an ETA is held by a worker, and redelivered while it is. There is none."""
    senders = {"apply_async", "send_task", "apply", "signature", "subtask"}
    found = [
        ast.unparse(call)
        for path in python_of("queue_core", "reviewboard")
        for call in ast.walk(ast.parse(path.read_text()))
        if isinstance(call, ast.Call)
        and getattr(call.func, "attr", getattr(call.func, "id", "")) in senders
        and {keyword.arg for keyword in call.keywords} & {"countdown", "eta"}
    ]

    assert found == []


def test_periodic_work_runs_on_intervals_and_in_utc() -> None:
    """CEL-08: no wall clock of any zone says when, so that no hour of the year is skipped or doubled."""
    entries = app.conf.beat_schedule.values()

    assert all(isinstance(entry["schedule"], int | float | timedelta | schedule) for entry in entries)
    assert not any("crontab" in path.read_text() for path in python_of("queue_core", "reviewboard"))
    assert (app.conf.enable_utc, app.conf.timezone, settings.TIME_ZONE) == (True, "UTC", "UTC")


def test_nobody_listens_for_what_a_lost_connection_would_lose() -> None:
    """PGQ-14: wake-ups go by the broker and the tick; there is no LISTEN whose link could be dead in silence."""
    found = [
        path.name
        for path in python_of("queue_core", "reviewboard")
        if re.search(r"\b(LISTEN|NOTIFY)\b", path.read_text())
    ]

    assert found == []


def test_two_poison_tickets_at_the_head_keep_nobody_from_their_turn(lane: Lane, stage: Stage) -> None:
    """PGQ-09: what failed rests, and is not tried a third time before all that stand behind it had their turn."""
    lane.connection.options = {"at_once": 2}
    lane.connection.save()
    poison = receive(lane, "nonsense", "nonsense")
    healthy = receive(lane, *["fine"] * 20, source="healthy")

    run(lane)
    let_rest_be_over(*poison)
    run(lane)

    order = [call["ticket"] for call in stage.calls()]
    tries = {job.ticket.external_id: order.count(job.ticket.external_id) for job in poison}
    assert set(tries.values()) == {2}
    assert Job.objects.filter(pk__in=[job.pk for job in healthy], state="DONE").count() == 20
    first_again = max(place for place, ticket in enumerate(order) if ticket in tries)
    assert first_again > 20


@pytest.mark.parametrize("what_is_left", ["a fresh sign of life", "no row at all"])
def test_a_dead_workers_lease_ends_whatever_its_name_says_now(lane: Lane, stage: Stage, what_is_left: str) -> None:
    """PGQ-05: it is back under the same name with fresh signs of life, or its rows are gone. Only the lease decides."""
    [job] = receive(lane, "fine")
    contract.claim(job.pk, clock=DATABASE_CLOCK, worker="pod-0", lease=timedelta(milliseconds=1))
    now = DATABASE_CLOCK.now()
    if what_is_left == "no row at all":
        Presence.objects.all().delete()
        Drainer.objects.all().delete()
    else:
        Presence.objects.create(kind="worker", name="pod-0", started_at=now, seen_at=now + timedelta(minutes=5))

    run(lane)

    job.refresh_from_db()
    assert (job.state, job.fence) == ("DONE", 2)
    assert Attempt.objects.get(fence=1).outcome == AttemptOutcome.LEASE_EXPIRED


def test_what_a_failed_intake_would_have_woken_is_never_woken(
    lane: Lane, monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: Any
) -> None:
    """CEL-12: rolled back, there is no row, no message and no figure of it."""

    def fail_before_the_commit() -> None:
        with transaction.atomic():
            receive(lane, "fine", severity=3)
            raise RuntimeError("just before the commit")

    with django_capture_on_commit_callbacks() as callbacks, pytest.raises(RuntimeError, match="before the commit"):
        fail_before_the_commit()

    assert callbacks == []
    assert not Ticket.objects.exists()
    assert not Message.objects.exists()


def test_the_table_of_cases_names_tests_that_name_the_case() -> None:
    rows = re.findall(r"^\| ([A-Z]{3}-\d\d) \|.*\| (.*) \|$", (ROOT / "docs" / "cases.md").read_text(), re.MULTILINE)

    folder = ROOT
    for case, held in rows:
        paths = re.findall(r"`((?:tests/[a-z]+/)?test_[a-z_]+\.py)`", held)
        assert paths, case
        for path in paths:
            folder = ROOT / Path(path).parent if "/" in path else folder
            text = (folder / Path(path).name).read_text()
            assert re.search(case.replace("-", "[-_]"), text, re.IGNORECASE), f"{case}: {path} does not name it"
    assert len({case for case, _held in rows}) == len(rows)
    groups = Counter(case[:3] for case, _held in rows)
    assert groups >= Counter({"CEL": 8, "PGQ": 14, "LSE": 6, "RET": 3, "BRK": 5})

"""The table of DESIGN.md, each row on each wire: what a fault does to the attempt, its budget, its job and the lane."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from queue_core import roles
from queue_core.clock import DATABASE_CLOCK
from queue_core.drain import drain
from queue_core.models import Attempt, Item, Job, Lane
from reviewboard.model_server import FAULTS, RunningServer
from reviewboard.models import Person
from tests.connections.wires import QUESTIONS, WIRES, row
from tests.factories import make_ground, make_lane
from tests.workers.conftest import receive

pytestmark = pytest.mark.django_db

#: For faults that only the time limit ends.
SHORT = timedelta(seconds=0.7)
LONG = timedelta(seconds=10)


@dataclass(frozen=True)
class Row:
    """A row of the table. `lane`: "" goes on, else the reason of its hold."""

    outcome: str
    job: str
    is_charged: bool
    lane: str = ""
    cause: str = ""


APPROVED = Row("verdict", "APPROVED", True)
REJECTED = Row("verdict", "REJECTED", True)
REFUSED = Row("verdict", "MANUAL", True, cause="refused")
NO_SCORE = Row("verdict", "MANUAL", True, cause="missing_score")
NO_NUMBER = Row("verdict", "MANUAL", True, cause="invalid_score")
MODEL_REFUSES = Row("refused", "MANUAL", True, cause="refused")
INPUT_REJECTED = Row("input_rejected", "MANUAL", True, cause="input_rejected")
INVALID = Row("invalid_answer", "back-off", True)
TIMEOUT = Row("timeout", "back-off", True)
UNAVAILABLE = Row("unavailable", "back-off", False, "auto_unavailable")
OVERLOADED = Row("overloaded", "back-off", False, "auto_overloaded")
MISCONFIGURED = Row("misconfigured", "at once", False, "auto_misconfigured")

#: Fault -> its row on every wire, or on each where they differ. A good text is sent.
TABLE: dict[str, Row | dict[str, Row]] = {
    "up": APPROVED,
    "wrong": REJECTED,
    "down": UNAVAILABLE,
    "hang": TIMEOUT,
    "reset": TIMEOUT,
    "overloaded": OVERLOADED,
    "busy": OVERLOADED,
    "quota": MISCONFIGURED,
    "error": INVALID,
    "bad_gateway": TIMEOUT,
    "gateway_timeout": TIMEOUT,
    "unauthorized": MISCONFIGURED,
    "forbidden": MISCONFIGURED,
    "not_found": MISCONFIGURED,
    "unsupported": MISCONFIGURED,
    "redirect": MISCONFIGURED,
    "limit": MISCONFIGURED,
    "rejects": INPUT_REJECTED,
    "refuses": {
        "openai-decisions": REFUSED,
        "systemone": REFUSED,
        # Moderations know no refusal.
        "openai-moderations": APPROVED,
        "http": MODEL_REFUSES,
    },
    "garbage": INVALID,
    "empty": INVALID,
    "malformed": INVALID,
    "truncated": INVALID,
    "huge": INVALID,
    "drip": INVALID,
    "drip_headers": TIMEOUT,
    # Answers by place cannot be told apart any more; answers by name are missed by name.
    "miscount": {
        "openai-decisions": INVALID,
        "openai-moderations": INVALID,
        "systemone": NO_SCORE,
        # The one score that is mapped.
        "http": INVALID,
    },
    "extra": {
        "openai-decisions": INVALID,
        "openai-moderations": INVALID,
        "systemone": INVALID,
        # What the mapping does not name is the endpoint's own affair.
        "http": APPROVED,
    },
    # Only answers that stand in order can stand in the wrong one.
    "disorder": {
        "openai-decisions": INVALID,
        "openai-moderations": APPROVED,
        "systemone": APPROVED,
        "http": APPROVED,
    },
    "unknown": {
        "openai-decisions": INVALID,
        "openai-moderations": APPROVED,
        "systemone": INVALID,
        "http": APPROVED,
    },
    "text_scores": INVALID,
    "nan": NO_NUMBER,
}
UNTIL_THE_LIMIT = ("hang", "drip", "drip_headers")
RULES: dict[str, list[dict[str, Any]]] = {
    kind: [{"category": category, "reject_at": 0.8, "approve_below": 0.3, "reason_code": "insult"}]
    for kind, (_path, category) in WIRES.items()
}
# The last question's score: that one is missing where an answer is.
RULES["systemone"] += [{"category": "severity", "reject_at": 0.9, "approve_below": 0.5, "reason_code": "insult"}]


@pytest.fixture(autouse=True)
def _long_slice(settings: Any) -> None:
    """However busy the machine: what is tested is one turn."""
    settings.QUEUE_CORE_DRAIN_SLICE = timedelta(minutes=2)


def lane_at(kind: str, model: RunningServer, *, limit: timedelta = LONG) -> Lane:
    """A running lane whose first unavailable or overloaded answer holds it."""
    make_ground()
    connection = row(kind, model.url, name=f"at-{kind}", call_time_limit=limit)
    connection.save()
    lane = make_lane(connection=connection, unavailable_limit=1)
    assert lane.policy is not None
    lane.policy.rules = RULES[kind]
    lane.policy.questions = QUESTIONS
    lane.policy.save()
    return lane


def work(lane: Lane, text: str = "Good morning.") -> Job:
    """One ticket of the lane, worked on once."""
    [job] = receive(lane, text)
    drain(lane.pk, task="t1", worker="w1", clock=DATABASE_CLOCK)
    lane.refresh_from_db()
    return Job.objects.get(pk=job.pk)


def row_of(job: Job, lane: Lane) -> Row:
    """What came of it, in the words of the table."""
    attempt = Attempt.objects.get(job=job)
    where = job.result or ("back-off" if job.available_at is not None else "at once")
    item = Item.objects.filter(job=job).first()
    assert job.attempts == (1 if attempt.is_charged else 0)
    assert (job.state == "DONE") == (job.result is not None)
    hold = lane.hold.reason if lane.run is None and lane.hold else ""
    return Row(str(attempt.outcome), where, attempt.is_charged, hold, item.cause if item else "")


def test_the_table_has_a_row_for_every_fault_of_the_stand_in() -> None:
    assert TABLE.keys() == FAULTS.keys()


@pytest.mark.parametrize("fault", TABLE)
def test_each_fault_has_the_same_effect_by_the_table_on_every_wire(fault: str, model: RunningServer) -> None:
    """BRK-03, BRK-04"""
    expected = TABLE[fault]
    limit = SHORT if fault in UNTIL_THE_LIMIT else LONG
    lanes = {kind: lane_at(kind, model, limit=limit) for kind in WIRES}
    model.set(fault, retry_after="120")

    found = {kind: row_of(work(lane), lane) for kind, lane in lanes.items()}

    assert found == (expected if isinstance(expected, dict) else dict.fromkeys(WIRES, expected))
    if fault in ("overloaded", "busy"):
        rests = [lane.claims_not_before for lane in lanes.values()]
        assert all(until and until > DATABASE_CLOCK.now() + timedelta(seconds=60) for until in rests)


@pytest.mark.parametrize("fault", ["unauthorized", "not_found", "redirect", "limit", "quota"])
def test_a_lane_held_for_its_configuration_says_in_a_plain_sentence_what_to_change(
    fault: str, model: RunningServer
) -> None:
    lane = lane_at("openai-decisions", model)
    model.set(fault)

    work(lane)

    assert lane.hold is not None
    sentence = lane.hold.params["detail"].splitlines()[0]
    assert sentence.endswith(".")
    assert len(sentence) > 40


def test_the_lanes_page_shows_the_sentence_of_what_to_change(client: Client, model: RunningServer) -> None:
    lane = lane_at("systemone", model)
    model.set("unauthorized")
    work(lane)
    vera = Person.objects.create_user("vera")
    roles.assign(vera, roles.VIEWER)
    client.force_login(vera)

    shown = client.get(reverse("lane", args=[lane.name])).content.decode()

    assert "The model server does not accept the key (401). Set another key for this connection." in shown


def test_one_text_that_is_refused_goes_to_people_and_the_rest_of_its_request_is_judged(model: RunningServer) -> None:
    lane = lane_at("openai-moderations", model)
    texts = ["fine"] * 9 + ["[[reject]] me"] + ["you idiot"] * 6
    jobs = receive(lane, *texts)

    drain(lane.pk, task="t1", worker="w1", clock=DATABASE_CLOCK)

    results = [Job.objects.get(pk=job.pk).result for job in jobs]
    assert results == ["APPROVED"] * 9 + ["MANUAL"] + ["REJECTED"] * 6
    assert Attempt.objects.get(job=jobs[9]).detail == "The input could not be processed."
    # Sixteen together, then halves until the guilty one stands alone.
    assert len(model.calls[0].body["input"]) == 16
    assert len(model.calls) == 9


@pytest.mark.parametrize(
    ("said", "seconds"),
    [("30", 30), ("Thu, 01 Jan 2026 00:01:00 GMT", 0), ("-5", 0), ("99999999", None), ("soon", 0)],
)
def test_what_a_busy_server_asks_for_is_honoured_within_bounds(
    said: str, seconds: int | None, model: RunningServer
) -> None:
    """BRK-04"""
    lane = lane_at("systemone", model)
    lane.unavailable_limit = 5
    lane.save()
    model.set("busy", retry_after=said)

    work(lane)

    now = DATABASE_CLOCK.now()
    if seconds is None:
        # Beyond what the lane tolerates: no silence of three years, a hold.
        assert lane.hold is not None
        assert lane.hold.params == {"retry_after": 86400.0}
    elif seconds:
        assert lane.claims_not_before is not None
        assert timedelta(seconds=seconds - 10) < lane.claims_not_before - now <= timedelta(seconds=seconds)
    else:
        assert lane.run is not None
        assert lane.claims_not_before is None

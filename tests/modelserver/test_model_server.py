"""The stand-in: what it answers, how it fails, and who says so."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reviewboard.model_server import FAULTS, Condition, RunningServer, Step, read_script, running
from reviewboard.model_server.conditions import ConditionFault

ROOT = Path(__file__).parents[2]
QUESTIONS = [{"type": "predicate", "name": "insult", "instructions": "Is it an insult?"}]


@pytest.fixture(scope="module")
def model() -> Iterator[RunningServer]:
    with running() as server:
        yield server


@pytest.fixture(autouse=True)
def _well(model: RunningServer) -> None:
    model.set()
    model.forget()


def send(url: str, body: object, *, method: str = "POST", limit: float = 5.0) -> tuple[int, Any]:
    request = urllib.request.Request(url, json.dumps(body).encode(), method=method)
    try:
        with urllib.request.urlopen(request, timeout=limit) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers


def ask(model: RunningServer, text: str) -> tuple[int, Any]:
    return send(f"{model.url}/v1/decisions", {"model": "m", "input": text, "questions": QUESTIONS})


def test_each_wire_answers_as_the_text_is(model: RunningServer) -> None:
    _status, decided = ask(model, "you idiot")
    _status, moderated = send(f"{model.url}/v1/moderations", {"input": ["fine", "[[p=0.7]]"]})
    noul = {"type": "noul", "instructions": "?"}
    _status, named = send(f"{model.url}/v1/systemone", {"state": "[[p=0.25]]", "questions": {"insult": noul}})
    _status, own = send(f"{model.url}/review", {"text": "[[p=0.5]]"})

    assert decided["answers"][0]["probability"] > 0.9
    assert [result["category_scores"]["harassment"] > 0.5 for result in moderated["results"]] == [False, True]
    assert named["answers"]["insult"]["noul"] == 0.25
    assert own["scores"]["insult"] == 0.5


def test_down_refuses_connections_until_it_is_up_again(model: RunningServer) -> None:
    model.set("down")
    with pytest.raises(urllib.error.URLError) as refused:
        ask(model, "hello")
    model.set("up")

    assert isinstance(refused.value.reason, ConnectionRefusedError)
    assert ask(model, "hello")[0] == 200


def test_control_over_http_changes_the_condition_and_shows_what_came_in(model: RunningServer) -> None:
    send(f"{model.control_url}/", {"fault": "overloaded", "retry_after": "120"}, method="PUT")
    status, headers = ask(model, "hello")
    with urllib.request.urlopen(f"{model.control_url}/calls") as answer:
        calls = json.loads(answer.read())

    assert (status, headers["Retry-After"]) == (429, "120")
    assert [(call["path"], call["fault"]) for call in calls] == [("/v1/decisions", "overloaded")]


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ({"fault": "sulking"}, "fault"),
        ({"latency": -1}, "latency"),
        ({"share": 2}, "share"),
        ({"mood": "bad"}, "mood"),
        ([], "object"),
    ],
)
def test_a_condition_that_is_none_is_refused_with_its_field(model: RunningServer, condition: object, said: str) -> None:
    with pytest.raises(ConditionFault, match=said):
        Condition.read(condition)

    assert send(f"{model.control_url}/", condition, method="PUT")[0] == 422


def test_a_share_of_the_calls_meets_the_fault_spread_evenly(model: RunningServer) -> None:
    model.set("error", share=0.25)

    statuses = [ask(model, "hello")[0] for _ in range(12)]

    assert statuses.count(500) == 3


def test_a_script_goes_on_by_calls_and_by_time(model: RunningServer) -> None:
    steps = read_script([{"fault": "error", "calls": 2}, {"fault": "busy", "for": 0.05}, {"fault": "unauthorized"}])
    model.play(steps)

    first = [ask(model, "hello")[0] for _ in range(2)]
    end = time.monotonic() + 5
    while (last := ask(model, "hello")[0]) == 503 and time.monotonic() < end:
        pass

    assert first == [500, 500]
    assert last == 401


def test_a_script_may_begin_again(model: RunningServer) -> None:
    model.play([Step(Condition("error"), calls=1), Step(Condition(), calls=1)], repeat=True)

    assert [ask(model, "hello")[0] for _ in range(4)] == [500, 200, 500, 200]


def test_every_fault_is_one_that_a_caller_can_tell_from_up(model: RunningServer) -> None:
    told = {}
    for fault in sorted(FAULTS.keys() - {"up", "down", "hang", "reset", "truncated", "drip", "drip_headers", "huge"}):
        model.set(fault)
        request = json.dumps({"model": "m", "input": "[[p=0.9]]", "questions": QUESTIONS * 2}).encode()
        try:
            with urllib.request.urlopen(f"{model.url}/v1/decisions", request) as answer:
                told[fault] = answer.read()
        except urllib.error.HTTPError as error:
            with error:
                told[fault] = error.read() + str(error.code).encode()
    model.set()
    with urllib.request.urlopen(f"{model.url}/v1/decisions", request) as answer:
        good = answer.read()

    # These two change what one choice or two different questions look like.
    same = {fault for fault, said in told.items() if said == good}
    assert same <= {"unknown", "disorder"}


@pytest.mark.processes
def test_the_command_serves_until_it_is_told_to_end(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text('[{"fault": "unauthorized"}]')
    command = [sys.executable, "manage.py", "model_server", "--port", "0", "--control-port", "0", "--script", script]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, env=os.environ, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.search(r"(http://\S+)/v1", line)
        assert found, line
        status, _headers = send(f"{found[1]}/v1/moderations", {"input": "hello"})
        process.send_signal(signal.SIGTERM)
        code = process.wait(20)

    assert status == 401
    assert code == 0

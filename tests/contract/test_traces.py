"""The conformance suite: every trace through the single verbs and through the batch verbs."""

import io
import json
import os
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from queue_core.management.commands.contract_check import FIXTURE
from queue_core.models import Job, Lane

pytestmark = pytest.mark.django_db

#: A folder of longer traces than the one that is delivered, if there is one.
MORE = os.environ.get("REVIEWBOARD_TRACES")
#: So many lines of each: all of them take half a minute.
BEGINNING = 250
TRACES = [FIXTURE, *(sorted(Path(MORE).glob("trace-*.jsonl")) if MORE else [])]


def check(*traces: Path | str) -> str:
    out = io.StringIO()
    call_command("contract_check", *[f"--trace={trace}" for trace in traces], stdout=out)
    return out.getvalue()


def refused(*traces: Path | str) -> tuple[int, str]:
    out = io.StringIO()
    with pytest.raises(CommandError) as caught:
        call_command("contract_check", *[f"--trace={trace}" for trace in traces], stdout=out)
    return caught.value.returncode, out.getvalue() + str(caught.value)


def lines_of(trace: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in trace.read_text().splitlines()]


def written(folder: Path, lines: list[dict[str, Any]]) -> Path:
    trace = folder / "trace.jsonl"
    trace.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return trace


@pytest.mark.parametrize("trace", TRACES, ids=lambda trace: trace.stem)
@pytest.mark.parametrize("most", [BEGINNING, pytest.param(None, marks=pytest.mark.long)], ids=["beginning", "whole"])
def test_a_trace_is_replayed_without_a_difference_through_both_cores(
    tmp_path: Path, trace: Path, most: int | None
) -> None:
    lines = lines_of(trace)[:most]

    printed = check(written(tmp_path, lines))

    assert printed.count(f"{len(lines)} lines, 0 differences") == 2
    assert "SingleCore" in printed
    assert "BatchCore" in printed


def test_the_fixture_ends_in_the_names_of_what_it_showed() -> None:
    printed = check()

    assert printed.splitlines()[-1] == (
        "PASS: lease exclusion, stale fence rejected, duplicate commit, revision conflict, finite retry, deadline"
    )


def test_a_check_leaves_nothing_behind() -> None:
    check()

    assert not Job.objects.exists()
    assert not Lane.objects.exists()


BROKEN = {
    "add": (0, {"state": "DONE"}),
    "claim that is given": (1, {"token": None}),
    "claim that is not given": (2, {"token": {"id": "a", "fence": 2, "revision": "v1"}}),
    "stale": (4, {"outcome": "committed"}),
    "committed": (5, {"outcome": "already-done"}),
    "already done": (6, {"outcome": "stale"}),
    "revision conflict": (7, {"state": "WAITING"}),
    "state": (12, {"state": "DEAD", "attempts": 2, "fence": 3, "lease_until": 313, "result": None}),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_trace_that_expects_something_else_is_told_by_line_and_exits_1(tmp_path: Path, broken: str) -> None:
    number, expectation = BROKEN[broken]
    lines = lines_of(FIXTURE)
    lines[number]["expect"] = expectation

    code, printed = refused(written(tmp_path, lines))

    assert code == 1
    assert printed.count(f"line {number + 1} ({lines[number]['op']})") == 2
    assert "PASS" not in printed


def test_a_difference_in_one_of_two_traces_exits_1(tmp_path: Path) -> None:
    lines = lines_of(FIXTURE)
    lines[5]["expect"] = {"outcome": "stale"}

    code, printed = refused(FIXTURE, written(tmp_path, lines))

    assert code == 1
    assert "PASS" not in printed


@pytest.mark.parametrize(
    "line",
    [
        {"op": "add", "id": "a", "revision": "v1", "now": 10**30, "deadline": 10**31, "expect": {"error": "job"}},
        {"op": "add", "id": "a", "revision": "v1", "now": 0, "deadline": 10**30, "expect": {"error": "job"}},
        {"op": "add", "id": "a\0", "revision": "v1", "now": 0, "deadline": 10, "expect": {"error": "job"}},
        {"op": "add", "id": "a", "revision": "\ud800", "now": 0, "deadline": 10, "expect": {"error": "job"}},
        {"op": "claim", "id": "a", "now": 10**30, "lease_ms": 1, "max_attempts": 1,
         "expect": {"error": "claim clock/budget"}},
        {"op": "claim", "id": "none", "now": 0, "lease_ms": 10**30, "max_attempts": 10**30, "expect": {"token": None}},
    ],
    ids=["clock beyond dates", "deadline beyond dates", "NUL in an id", "half a pair", "claim beyond dates", "no end"],
)  # fmt: skip
def test_numbers_beyond_all_dates_are_refused_as_the_caller_s_mistake(tmp_path: Path, line: dict[str, Any]) -> None:
    assert "1 lines, 0 differences" in check(written(tmp_path, [line]))


def test_a_lease_beyond_all_dates_ends_at_the_deadline_in_both_cores(tmp_path: Path) -> None:
    lines: list[dict[str, Any]] = [
        {"op": "add", "id": "a", "revision": "v1", "now": 0, "deadline": 10**13, "expect": {"state": "WAITING"}},
        {"op": "claim", "id": "a", "now": 1, "lease_ms": 10**30, "max_attempts": 2**40,
         "expect": {"token": {"id": "a", "fence": 1, "revision": "v1"}}},
        {"op": "state", "id": "a",
         "expect": {"state": "LEASED", "attempts": 1, "fence": 1, "lease_until": 10**13, "result": None}},
        {"op": "complete", "token": {"id": "a", "fence": 2**70, "revision": "v1"}, "now": 2, "result": "MANUAL",
         "expect": {"outcome": "stale"}},
        {"op": "complete", "token": {"id": "a", "fence": -(2**70), "revision": "v1"}, "now": 2, "result": "MANUAL",
         "expect": {"outcome": "stale"}},
        {"op": "complete", "token": {"id": "a", "fence": 1, "revision": "v1"}, "now": 10**13 - 1, "result": "MANUAL",
         "expect": {"outcome": "committed"}},
    ]  # fmt: skip

    assert "6 lines, 0 differences" in check(written(tmp_path, lines))


@pytest.mark.parametrize("text", ["{", "[]", '{"op": "drop"}', "null", '{"op": "state"}', '{"op": "claim", "id": 1}'])
def test_what_is_no_trace_is_told_by_its_line(tmp_path: Path, text: str) -> None:
    trace = tmp_path / "trace.jsonl"
    trace.write_text("\n" + text + "\n")

    code, printed = refused(trace)

    assert code == 1
    assert "line 2" in printed


def test_a_trace_that_is_not_there_is_told_by_its_name() -> None:
    code, printed = refused("/nowhere/trace.jsonl")

    assert code == 1
    assert "/nowhere/trace.jsonl" in printed


def test_a_trace_may_come_by_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(FIXTURE.read_text()))

    assert "PASS" in check("-")

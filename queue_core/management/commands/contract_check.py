"""`manage.py contract_check`: replay contract traces through the verbs, in a transaction that is rolled back."""

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TextIO

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction

import queue_core
from queue_core.models import Lane, ModelConnection, Policy, ReasonCode, StageRun
from queue_core.traces import GROUND, PROMISES, SOURCE, BatchCore, Core, Replay, SingleCore

FIXTURE = Path(queue_core.__file__).parent / "conformance" / "fixture.jsonl"
LONGEST_LINE = 1_000_000
#: What a line of each op holds. Clocks, leases, budgets and results may be anything: the contract judges them.
FIELDS: dict[str, dict[str, type]] = {
    "add": {"id": str, "revision": str, "now": object, "deadline": object, "expect": dict},
    "claim": {"id": str, "now": object, "lease_ms": object, "max_attempts": object, "expect": dict},
    "complete": {"token": dict, "now": object, "result": object, "expect": dict},
    "state": {"id": str, "expect": dict},
}
TOKEN_FIELDS: dict[str, type] = {"id": str, "fence": int, "revision": str}
FAR = datetime(9000, 1, 1, tzinfo=UTC)


class Command(BaseCommand):
    help = (
        "Replays contract traces (JSON lines) through the single and the batch verbs, in a lane and a source of their "
        "own, inside a transaction that is rolled back. Prints what differs; exits 1 on any difference."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--trace",
            action="append",
            metavar="FILE",
            help="a trace, or - for standard input; may be given more than once; without it the built-in fixture",
        )

    def handle(self, *args: object, trace: list[str] | None, **options: object) -> None:
        differences, shown = 0, set(PROMISES)
        for name in trace or [str(FIXTURE)]:
            lines = list(read_lines(name))
            for core in (SingleCore(), BatchCore()):
                found, promises = self._play(Path(name).name, lines, core)
                differences += found
                shown &= promises
        if differences:
            raise CommandError(f"{differences} differences", returncode=1)
        if shown:
            self.stdout.write(f"PASS: {', '.join(promise for promise in PROMISES if promise in shown)}")

    def _play(self, name: str, lines: list[tuple[int, dict[str, Any]]], core: Core) -> tuple[int, set[str]]:
        differences = 0
        with trace_lane() as lane:
            replay = Replay(lane, core)
            for number, line in lines:
                difference = replay.play(number, line)
                if difference is not None:
                    differences += 1
                    self.stdout.write(f"{name}: {type(core).__name__}: {difference}")
        self.stdout.write(f"{name}: {type(core).__name__}: {len(lines)} lines, {differences} differences")
        return differences, replay.shown


@contextmanager
def trace_lane() -> Iterator[Lane]:
    """A lane that runs one stage with room for everything; gone with the transaction."""
    with transaction.atomic():
        yield _make_lane()
        transaction.set_rollback(True)


def _make_lane() -> Lane:
    connection = ModelConnection.objects.create(name=SOURCE, kind="none")
    lane = Lane.objects.create(name=SOURCE, connection=connection, model_sees_urgent_first=True)
    policy = Policy.objects.create(lane=lane, version=1, rules={}, made_at=FAR)
    run = StageRun.objects.create(
        lane=lane,
        number=2,
        name=SOURCE,
        cap=10_000,
        soak_completions=0,
        soak_time=timedelta(0),
        window=timedelta(minutes=5),
        least_sample=1,
        max_error_ratio=1.0,
        max_timeout_ratio=1.0,
        max_stale_ratio=1.0,
        connection=connection,
        connection_snapshot={},
        lease=lane.lease,
        policy=policy,
        reason=SOURCE,
        figures={},
        started_at=FAR,
    )
    ReasonCode.objects.get_or_create(code=GROUND, defaults={"title": GROUND})
    # Judged in the far future: the traces' clock starts at 1970, and nobody judges this lane.
    lane.run, lane.cap, lane.policy, lane.judged_at = run, run.cap, policy, FAR
    lane.save()
    return lane


def read_lines(name: str) -> Iterable[tuple[int, dict[str, Any]]]:
    """The numbered lines of a trace. Raises CommandError with the line for what is no trace."""
    with _opened(name) as stream:
        number = 0
        while text := stream.readline(LONGEST_LINE):
            number += 1
            if text.strip():
                yield number, _parse(name, number, text)


def _opened(name: str) -> AbstractContextManager[TextIO]:
    try:
        return nullcontext(sys.stdin) if name == "-" else Path(name).open(encoding="utf-8")
    except OSError as error:
        raise CommandError(f"{name}: {error.strerror}") from error


def _parse(name: str, number: int, text: str) -> dict[str, Any]:
    try:
        line = json.loads(text)
    except ValueError as error:
        raise CommandError(f"{name}: line {number} is no JSON: {error}") from error
    if not isinstance(line, dict) or line.get("op") not in FIELDS:
        raise CommandError(f"{name}: line {number} has no op that a trace knows.")
    wrong = _wrong_fields(line, FIELDS[line["op"]])
    if not wrong and line["op"] == "complete":
        wrong = _wrong_fields(line["token"], TOKEN_FIELDS)
    if wrong:
        raise CommandError(f"{name}: line {number} has none, or another kind, of: {', '.join(wrong)}.")
    return line


def _wrong_fields(record: dict[str, Any], fields: dict[str, type]) -> list[str]:
    return [name for name, kind in fields.items() if name not in record or not isinstance(record[name], kind)]

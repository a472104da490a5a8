"""A file with wrong lines, into the command as an engineer runs it: through a pipe, in a process of its own."""

import json
import subprocess
import sys

import pytest

from queue_core import lanes
from queue_core.clock import DATABASE_CLOCK
from queue_core.models import Evidence, Job, Message, ModelConnection, Ticket
from tests.workers.processes import ROOT, environment_for

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]

GOOD = {"lane": "posts", "ticket": "first", "revision": "1", "evidence": {"text": "Good morning."}, "deadline": "+1h"}
LINES = [
    json.dumps(GOOD),
    json.dumps(GOOD | {"ticket": "b", "lane": "nowhere"}),
    json.dumps(GOOD | {"ticket": ""}),
    json.dumps(GOOD | {"ticket": "d", "deadline": "-1s"}),
    json.dumps(GOOD | {"ticket": "e", "evidence": {"text": "a\0b"}}),
    '{"lane": "posts", "ticket": ',
    json.dumps(GOOD | {"ticket": "g", "evidence": {"text": "x" * 10_000_000}}),
    json.dumps(GOOD | {"ticket": "last"}),
]


def test_wrong_lines_are_refused_with_number_field_and_reason_and_the_others_go_in_whole(tmp_path):
    lanes.create_lane("posts", ModelConnection.objects.create(name="local", kind="local"), clock=DATABASE_CLOCK)
    report = tmp_path / "report.ndjson"

    ran = subprocess.run(
        [sys.executable, "manage.py", "import_tickets", "-", "--source", "forum", "--report", str(report)],
        input="\n".join(LINES).encode(),
        cwd=ROOT,
        env=environment_for(broker_url="redis://127.0.0.1:1/0"),
        capture_output=True,
        timeout=120,
        check=False,
    )

    assert ran.returncode == 1, ran.stderr
    assert b"8 lines: 2 stored, 0 known, 0 superseded, 0 in conflict, 6 refused." in ran.stdout
    refused = [json.loads(line)["_refused"] for line in report.read_text().splitlines()]
    assert [(one["line"], one["field"]) for one in refused] == [
        (2, "lane"), (3, "ticket"), (4, "deadline"), (5, "evidence"), (6, ""), (7, ""),
    ]  # fmt: skip
    for one in refused:
        where = f"Line {one['line']}, {one['field']}: " if one["field"] else f"Line {one['line']}: "
        assert (where + one["reason"]).encode() in ran.stderr
    assert set(Ticket.objects.values_list("external_id", "source")) == {("first", "forum"), ("last", "forum")}
    assert Job.objects.filter(state="WAITING").count() == Job.objects.count() == Evidence.objects.count() == 2
    assert not Message.objects.filter(ticket__isnull=False).exists()

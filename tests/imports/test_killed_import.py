"""A run that is killed in the middle is put right by running it again."""

import json
import subprocess
import sys

import pytest

from queue_core.models import Evidence, Job, Ticket
from tests.factories import make_lane
from tests.workers.processes import PATIENCE, ROOT, environment_for, wait_until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.processes]

LINES = 10_000


def test_an_import_that_is_killed_half_way_is_completed_by_the_next_run(tmp_path):
    """IMP-05"""
    make_lane(name="posts", cap=None)
    path = tmp_path / "tickets.ndjson"
    with path.open("w") as out:
        for number in range(LINES):
            out.write(json.dumps({"lane": "posts", "ticket": f"t{number}", "revision": "1", "evidence": {"n": number}}))
            out.write("\n")
    command = [sys.executable, "manage.py", "import_tickets", str(path)]
    environment = environment_for(broker_url="redis://127.0.0.1:1/0")

    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL) as first:
        wait_until(lambda: Job.objects.count() >= 2000 or first.poll() is not None, "some tickets are in")
        first.kill()
    stored = Job.objects.count()
    assert 0 < stored < LINES
    assert Ticket.objects.count() == Evidence.objects.count() == stored

    second = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=True
    )

    assert f"{LINES} lines: {LINES - stored} stored, {stored} known" in second.stdout
    assert Ticket.objects.count() == Evidence.objects.count() == Job.objects.count() == LINES

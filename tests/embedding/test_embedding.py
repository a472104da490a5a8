"""`queue_core` alone, in another Django project, in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.workers.processes import ROOT

pytestmark = pytest.mark.processes

HERE = Path(__file__).parent
LIMIT = 120


def test_another_project_receives_claims_and_completes_and_its_receiver_is_part_of_the_completion(
    tmp_path: Path,
) -> None:
    """The site cannot be imported there: the folder holds the queue and the project, and nothing else of ours."""
    (tmp_path / "queue_core").symlink_to(ROOT / "queue_core")
    (tmp_path / "shop").symlink_to(HERE / "shop")
    (tmp_path / "prove.py").write_text((HERE / "prove.py").read_text())
    url = os.environ.get("DATABASE_URL") or os.environ["REVIEWBOARD_TEST_DATABASE_URL"]
    given = {"PATH": os.environ["PATH"], "DATABASE_URL": url, "PYTHONPATH": str(tmp_path)}

    proved = subprocess.run(
        [sys.executable, "-W", "error", "prove.py"],
        cwd=tmp_path, env=given, capture_output=True, text=True, timeout=LIMIT, check=False,
    )  # fmt: skip

    assert (proved.returncode, proved.stdout.splitlines()[-1:]) == (0, ["PROVED"]), proved.stderr[-4000:]

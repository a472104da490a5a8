"""What must hold for the repository as a whole."""

import re
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command

ROOT = Path(__file__).parents[2]
PUBLIC = {"https://pypi.org", "https://files.pythonhosted.org"}


def test_the_lock_file_names_only_the_public_index() -> None:
    lock = (ROOT / "uv.lock").read_text()

    assert set(re.findall(r"https?://[^/\"]+", lock)) <= PUBLIC


def test_imports_point_one_way() -> None:
    ended = subprocess.run(
        [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert ended.returncode == 0, ended.stdout


@pytest.mark.django_db
def test_no_migration_is_missing() -> None:
    call_command("makemigrations", "--check", "--dry-run", stdout=StringIO())

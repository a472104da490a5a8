"""A configuration is whole or refused, with one sentence that says what to do."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured
from environ import Env

from reviewboard import environment
from reviewboard.embedded.folders import sockets_of
from reviewboard.starting import REFUSED

ROOT = Path(__file__).parents[2]
DATABASE = "postgres://board:hunter2@db.example/board"
BROKER = "redis://broker.example/0"
WHOLE = {
    "DATABASE_URL": DATABASE,
    "CELERY_BROKER_URL": BROKER,
    "SECRET_KEY": "s" * 60,
    "ALLOWED_HOSTS": "board.example",
}


def read(base: Path, **named: str) -> environment.Environment:
    env = Env()
    env.ENVIRON = named
    return environment.read(env, base)


def test_neither_server_means_the_embedded_pair_and_writes_nothing(tmp_path: Path) -> None:
    found = read(tmp_path)

    assert found.is_embedded
    assert found.is_local
    assert found.var == tmp_path / "var"
    assert str(sockets_of(found.var)) in found.database_url
    assert str(sockets_of(found.var)) in found.broker_url
    assert list(tmp_path.iterdir()) == []


def test_the_folder_can_be_another(tmp_path: Path) -> None:
    assert read(tmp_path / "base", REVIEWBOARD_VAR=str(tmp_path / "mine")).var == tmp_path / "mine"


def test_a_kept_secret_is_shared_by_all_processes(tmp_path: Path) -> None:
    (tmp_path / "var").mkdir()
    (tmp_path / "var" / environment.SECRET_FILE).write_text("kept\n")

    assert read(tmp_path).secret_key == read(tmp_path).secret_key == "kept"


def test_both_servers_mean_nothing_embedded(tmp_path: Path) -> None:
    found = read(tmp_path, **WHOLE)

    assert not found.is_embedded
    assert not found.is_local
    assert (found.database_url, found.broker_url) == (DATABASE, BROKER)
    assert found.hosts == ("board.example",)


@pytest.mark.parametrize(
    ("there", "missing"), [("DATABASE_URL", "CELERY_BROKER_URL"), ("CELERY_BROKER_URL", "DATABASE_URL")]
)
def test_one_server_without_the_other_is_refused(tmp_path: Path, there: str, missing: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=f"{there} is set and {missing} is not"):
        read(tmp_path, **{there: WHOLE[there]})


@pytest.mark.parametrize("missing", ["SECRET_KEY", "ALLOWED_HOSTS"])
def test_real_servers_without_a_secret_or_hosts_are_refused(tmp_path: Path, missing: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=f"{missing} must be set"):
        read(tmp_path, **{**WHOLE, missing: ""})


def test_a_short_secret_is_refused_with_the_least_length_and_not_shown(tmp_path: Path) -> None:
    with pytest.raises(ImproperlyConfigured, match=r"SECRET_KEY has 7 characters.*at least 32") as refused:
        read(tmp_path, **{**WHOLE, "SECRET_KEY": "hunter2"})

    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "url"), [("DATABASE_URL", "mysql://board:hunter2@db/board"), ("CELERY_BROKER_URL", "sqs://key:hunter2@")]
)
def test_another_kind_of_server_is_refused_without_its_password(tmp_path: Path, name: str, url: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=f"{name} begins with") as refused:
        read(tmp_path, **{**WHOLE, name: url})

    assert "hunter2" not in str(refused.value)


@pytest.mark.processes
def test_a_refusal_is_one_sentence_and_no_traceback(tmp_path: Path) -> None:
    inherited = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    ended = subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), "check"],
        env={**inherited, "REVIEWBOARD_VAR": str(tmp_path), "DATABASE_URL": DATABASE},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert ended.returncode == REFUSED
    assert ended.stderr.startswith("Reviewboard does not start: DATABASE_URL is set")
    assert "Traceback" not in ended.stderr
    assert "hunter2" not in ended.stderr


@pytest.mark.parametrize("command", ["audit_verify", "migrate"])
def test_a_database_that_is_not_there_is_said_in_a_sentence_and_nothing_else(tmp_path: Path, command: str) -> None:
    ended = subprocess.run(
        [sys.executable, "manage.py", command],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "REVIEWBOARD_VAR": str(tmp_path / "var")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert ended.returncode == 1
    assert ended.stderr == "The database cannot be reached. Start it with: uv run manage.py services start\n"

"""The embedded servers: real ones, in folders that are thrown away."""

import os
import shutil
import signal
import stat
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from reviewboard.embedded import (
    EmbeddedPostgres,
    EmbeddedValkey,
    ServiceFault,
    faults,
    folders,
    processes,
    unprivileged,
)
from reviewboard.embedded.postgres import _binary

pytestmark = pytest.mark.processes

type Server = EmbeddedPostgres | EmbeddedValkey

GONE = 20.0


@pytest.fixture
def folder() -> Iterator[Path]:
    """Short, since a socket's path is; pytest's own folders are not."""
    made = Path(tempfile.mkdtemp(prefix="rbs-"))
    yield made
    shutil.rmtree(made, ignore_errors=True)


@pytest.fixture
def speak_of(folder: Path) -> Iterator[Callable[[type[Server], Path], Server]]:
    """An object for the server below a folder. A second one speaks of it as another process would, with no child.

    Asks for the folder, so that it is removed last: without its notes there a server cannot be found.
    """
    made: list[Server] = []

    def speak(kind: type[Server], folder: Path) -> Server:
        made.append(kind(folder / "data", folder / "s"))
        return made[-1]

    yield speak
    for server in made:
        if server.data.parent.is_dir():  # else it never started
            server.stop()
    for child in [server._child for server in made if server._child]:
        child.wait(GONE)


@pytest.fixture(params=[EmbeddedPostgres, EmbeddedValkey], ids=["postgres", "valkey"])
def kind(request: pytest.FixtureRequest) -> type[Server]:
    return request.param


@pytest.fixture
def server(speak_of, kind: type[Server], folder: Path) -> Server:
    return speak_of(kind, folder)


@pytest.fixture
def again(speak_of, kind: type[Server], folder: Path) -> Callable[[], Server]:
    return lambda: speak_of(kind, folder)


@pytest.fixture
def postgres(speak_of, folder: Path) -> EmbeddedPostgres:
    return speak_of(EmbeddedPostgres, folder)


def kill(server: Server) -> int:
    pid = server.pid()
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    assert processes.wait_until(lambda: server.pid() is None, GONE), "the server outlived kill -9"
    return pid


def test_start_answers_and_stop_leaves_nothing_running(server: Server) -> None:
    server.start()
    pid = server.pid()
    assert server.is_running()
    assert pid is not None

    server.stop()

    assert not server.is_running()
    assert server.pid() is None
    assert processes.wait_until(lambda: not processes.command_of(pid), GONE), "a process is left"


def test_stop_without_a_start_does_nothing(server: Server) -> None:
    server.data.parent.mkdir(exist_ok=True)

    server.stop()

    assert not server.is_running()


def test_a_second_start_finds_the_first(server: Server, again: Callable[[], Server]) -> None:
    server.start()

    again().start()

    assert again().pid() == server.pid()


def test_two_starts_at_once_make_one_server(server: Server, again: Callable[[], Server]) -> None:
    failed: list[BaseException] = []

    def start() -> None:
        try:
            again().start()
        except BaseException as fault:  # noqa: BLE001  told by the assertion below
            failed.append(fault)

    threads = [threading.Thread(target=start) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert failed == []
    assert server.is_running()


def test_after_kill_9_it_starts_again(server: Server, again: Callable[[], Server]) -> None:
    server.start()
    killed = kill(server)

    again().start()

    assert server.is_running()
    assert server.pid() != killed


def test_its_folders_are_closed_to_others(server: Server) -> None:
    server.start()

    assert server.data.stat().st_mode & 0o077 == 0
    assert server.sockets.stat().st_mode & 0o077 == 0


def test_a_folder_that_cannot_be_made_is_said(speak_of, kind: type[Server], folder: Path) -> None:
    (folder / "file").write_text("")

    with pytest.raises(ServiceFault, match=r"cannot be written.*REVIEWBOARD_VAR"):
        speak_of(kind, folder / "file").start()


def test_a_socket_folder_that_a_stranger_put_there_is_refused(server: Server, folder: Path) -> None:
    (folder / "elsewhere").mkdir()
    (folder / "s").symlink_to(folder / "elsewhere")

    with pytest.raises(ServiceFault, match="belongs to somebody else"):
        server.start()


def test_what_was_committed_is_there_after_kill_9(postgres: EmbeddedPostgres) -> None:
    postgres.start()
    postgres.create_database("board")
    with psycopg.connect(postgres.url("board")) as connection:
        connection.execute("CREATE TABLE kept AS SELECT generate_series(1, 1000) AS n")
    kill(postgres)

    postgres.start()

    with psycopg.connect(postgres.url("board")) as connection:
        assert connection.execute("SELECT count(*) FROM kept").fetchone() == (1000,)


def test_making_a_database_twice_makes_one(postgres: EmbeddedPostgres) -> None:
    postgres.start()

    postgres.create_database("board")
    postgres.create_database("board")

    psycopg.connect(postgres.url("board")).close()


def test_a_number_left_by_a_crash_that_is_now_another_program_keeps_nothing_from_starting(
    postgres: EmbeddedPostgres,
) -> None:
    postgres.start()
    kill(postgres)
    noted = postgres.data / "postmaster.pid"
    lines = noted.read_text().splitlines(keepends=True)
    noted.write_text("".join([f"{os.getpid()}\n", *lines[1:]]))

    postgres.start()

    assert postgres.is_running()


def test_data_of_another_version_is_refused_and_left_alone(postgres: EmbeddedPostgres) -> None:
    postgres.data.mkdir(parents=True)
    (postgres.data / "PG_VERSION").write_text("16\n")

    with pytest.raises(ServiceFault, match=r"written by PostgreSQL 16.*DATABASE_URL"):
        postgres.start()

    assert [file.name for file in postgres.data.iterdir()] == ["PG_VERSION"]


def test_a_folder_of_other_things_is_refused_and_left_alone(postgres: EmbeddedPostgres) -> None:
    postgres.data.mkdir(parents=True)
    (postgres.data / "letter.txt").write_text("mine")

    with pytest.raises(ServiceFault, match="neither empty nor PostgreSQL's"):
        postgres.start()

    assert (postgres.data / "letter.txt").read_text() == "mine"


def test_a_full_disk_is_said() -> None:
    fault = faults.of_log("PostgreSQL", "FATAL: could not write: No space left on device", "log")

    assert str(fault) == "PostgreSQL did not start: the disk is full. Free some space and start again."


@pytest.mark.skipif(os.geteuid() != 0, reason="only root needs to be somebody else")
def test_where_no_namespace_is_allowed_root_runs_it_as_nobody(postgres: EmbeddedPostgres, monkeypatch) -> None:
    program = str(_binary("initdb"))
    harmless = [*processes._prefix("nobody", program), "--version"]
    if subprocess.run(harmless, check=False, capture_output=True).returncode:
        pytest.skip("nobody may not enter the folder of the installed packages")
    monkeypatch.setattr(processes, "way", lambda: "nobody")
    monkeypatch.setattr(folders, "way", lambda: "nobody")

    postgres.start()

    assert postgres.is_running()
    assert (postgres.data / "PG_VERSION").stat().st_uid == unprivileged.NOBODY
    assert stat.S_IMODE(postgres.data.stat().st_mode) == folders.PRIVATE
    postgres.stop()


def test_what_nobody_may_not_read_is_said() -> None:
    said = 'initdb: error: could not access directory "/srv": Permission denied'

    assert "Start as an ordinary user" in str(faults.of_log("PostgreSQL", said, "its.log", is_nobody=True))
    assert "Permission denied" in str(faults.of_log("PostgreSQL", said, "its.log"))

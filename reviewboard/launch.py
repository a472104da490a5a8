"""The whole site from one command: servers, database, pages, workers, and all of it ended in order.

checks -> services -> migrations, static files -> what the caller prepares -> children -> watch -> end
"""

import contextlib
import http.client
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from django.conf import settings
from django.core.management import call_command
from django.db import connections

from reviewboard import launch_checks as checks
from reviewboard.embedded import ServiceFault, faults
from reviewboard.embedded.folders import make_private
from reviewboard.embedded.pair import EmbeddedPair
from reviewboard.environment import Environment
from reviewboard.launch_children import Children, Role, end_leftovers
from reviewboard.launch_terminal import Terminal, Wish

WEB_LIMIT = 60.0
LOOK_EVERY = 0.25
#: The servers are looked at more seldom, since a look connects.
SERVERS_EVERY = 5.0


@dataclass(frozen=True, slots=True)
class Site:
    host: str
    port: int
    workers: int

    @property
    def url(self) -> str:
        name = {"0.0.0.0": "localhost", "::": "localhost"}.get(self.host, self.host)  # noqa: S104  not bound here
        return f"http://{f'[{name}]' if ':' in name else name}:{self.port}"


class Launcher:
    def __init__(self, site: Site, *, is_demo: bool = False) -> None:
        self.site = site
        self.is_demo = is_demo
        self.environment: Environment = settings.ENVIRONMENT
        self.terminal = Terminal()
        self.wish = Wish()
        self.pair = EmbeddedPair(self.environment.var) if self.environment.is_embedded else None
        self.logs = self.environment.var / "log"
        self.children = Children(self._roles(), self.logs, self._environment_of_children())

    def run(self, prepare: Callable[[Terminal], None], announce: Callable[[Terminal], None]) -> None:
        """Returns when it was asked to end. `prepare` gets a migrated database, `announce` a site that answers."""
        checks.check_host(self.environment, self.site.host)
        with checks.only_launcher(self.environment.var), self.wish.heard(), contextlib.suppress(KeyboardInterrupt):
            self._begin()
            with self._services():
                self._prepare(prepare)
                with self._served():
                    if not self.wish.is_made:
                        announce(self.terminal)
                    self._watch()
        self.terminal.say("Ended.")

    def _begin(self) -> None:
        self.terminal.say("Reviewboard is starting. The first start takes the longest.")
        make_private(self.logs)
        if self.pair is not None:
            settings.SECRET_KEY = checks.keep_secret(self.environment)
        end_leftovers(self.logs, self.terminal.say)
        checks.check_port(self.site.host, self.site.port)

    @contextlib.contextmanager
    def _services(self) -> Iterator[None]:
        if self.pair is None:
            with self.terminal.step("Looking for the database and the broker"):
                checks.check_database()
                checks.check_broker(self.environment.broker_url)
            yield
            return
        try:
            with self.terminal.step("PostgreSQL and Valkey"):
                self.pair.start(lambda _name: None)
            yield
        finally:
            if not self.pair.is_kept:
                self.terminal.say("  Ending PostgreSQL and Valkey.")
                self.pair.stop()

    def _prepare(self, prepare: Callable[[Terminal], None]) -> None:
        with self.terminal.step("The database's tables"):
            call_command("migrate", interactive=False, verbosity=0)
        with self.terminal.step("The pages' files"):
            call_command("collectstatic", interactive=False, verbosity=0, clear=False)
        prepare(self.terminal)
        self.close_connections()

    def close_connections(self) -> None:
        """The children have their own; these would stand idle, and be in the way of the servers' end."""
        for connection in connections.all(initialized_only=True):
            connection.close()
            connection.close_pool()  # type: ignore[attr-defined]

    @contextlib.contextmanager
    def _served(self) -> Iterator[None]:
        self.wish.interrupts = False
        try:
            with self.terminal.step("Pages, workers and scheduler"):
                self.children.start()
                self._wait_for_pages()
            yield
        except OSError as error:
            raise faults.of_folder(self.logs, error) from error
        finally:
            self.wish.interrupts = False
            self.children.end(self.terminal.say, lambda: self.wish.is_hurried)

    def _wait_for_pages(self) -> None:
        limit = time.monotonic() + WEB_LIMIT
        while not self.wish.is_made and not _answers(self.site):
            self.children.watch(self.terminal.say)
            if time.monotonic() > limit:
                raise ServiceFault(f"The pages did not answer within {WEB_LIMIT:.0f} s. Look at {self.logs}/web.log.")
            time.sleep(LOOK_EVERY)

    def _watch(self) -> None:
        look_at_servers = time.monotonic() + SERVERS_EVERY
        while not self.wish.is_made:
            self.children.watch(self.terminal.say)
            if self.pair is not None and time.monotonic() > look_at_servers:
                self._revive(self.pair)
                look_at_servers = time.monotonic() + SERVERS_EVERY
            time.sleep(LOOK_EVERY)

    def _revive(self, pair: EmbeddedPair) -> None:
        for server in pair.servers:
            if server.pid() is None:
                self.terminal.say(f"{server.name} ended; it is started anew. Its log: {server.log}")
                server.start()

    def _roles(self) -> list[Role]:
        celery = ("celery", "--workdir", str(settings.BASE_DIR), "-A", "reviewboard")
        worker = (*celery, "worker", "-l", "INFO", "--without-gossip", "--without-mingle")
        drain = (*worker, "-Q", "drain", "-n", "worker@%h", "-c", str(self.site.workers))
        send = (*worker, "-Q", "deliveries,people", "-n", "sender@%h", "-P", "threads", "-c", "4")
        ticks = (*worker, "-Q", "ticks", "-n", "ticker@%h", "-P", "threads", "-c", "2")
        address = ("--host", self.site.host, "--port", str(self.site.port))
        web = ("--interface", "wsgi", *address, "--blocking-threads", "8", "--no-ws", "--respawn-failed-workers")
        # People who write posts and reviews, in the demo only.
        arrivals = [Role("arrivals", ("django", "demo_arrivals"), patience=3.0)] if self.is_demo else []
        return [
            # A worker ends when its calls in progress have ended; those that do not are taken over later.
            Role("worker", drain, patience=15.0),
            Role("ticker", ticks, patience=10.0),
            # A message that is out when it ends goes again, with the same id.
            Role("sender", send, patience=10.0),
            Role("scheduler", (*celery, "beat", "-l", "INFO", "--pidfile="), patience=5.0),
            Role(
                "web",
                ("granian", *web, "--working-dir", str(settings.BASE_DIR), "reviewboard.wsgi:application"),
                patience=8.0,
            ),
            *arrivals,
        ]

    def _environment_of_children(self) -> dict[str, str]:
        own = {
            "DJANGO_SETTINGS_MODULE": "reviewboard.settings",
            "PYTHONPATH": os.pathsep.join(filter(None, (str(settings.BASE_DIR), os.environ.get("PYTHONPATH")))),
            "PYTHONUNBUFFERED": "1",
            "REVIEWBOARD_VAR": str(self.environment.var),
            "REVIEWBOARD_DEMO": "1" if self.is_demo else "0",
        }
        return {**os.environ, **own}


def _answers(site: Site) -> bool:
    """Whether a page can be made, not only whether the port is open."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(site.host, site.host)  # noqa: S104  not bound here
    asking = http.client.HTTPConnection(host, site.port, timeout=5)
    try:
        asking.request("GET", "/sign-in/", headers={"Host": settings.ALLOWED_HOSTS[0].lstrip(".")})
        return asking.getresponse().status < http.HTTPStatus.INTERNAL_SERVER_ERROR
    except (OSError, http.client.HTTPException):
        return False
    finally:
        asking.close()

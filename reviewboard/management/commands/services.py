from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from reviewboard.embedded import ServiceFault
from reviewboard.embedded.pair import EmbeddedPair

#: As init scripts say "not running".
NOT_RUNNING = 3


class Command(BaseCommand):
    help = (
        "Start, stop or look at the embedded PostgreSQL and Valkey. `up` and `demo` start them by themselves; "
        "started here, they go on running when the site ends."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("act", choices=["start", "stop", "status"])

    def handle(self, *, act: str, **_options: Any) -> None:
        if not settings.ENVIRONMENT.is_embedded:
            raise ServiceFault(
                "DATABASE_URL and CELERY_BROKER_URL are set: this command handles the embedded servers only."
            )
        pair = EmbeddedPair(settings.ENVIRONMENT.var)
        {"start": self._start, "stop": self._stop, "status": self._status}[act](pair)

    def _start(self, pair: EmbeddedPair) -> None:
        pair.start(lambda name: self.stdout.write(f"{name} runs."))
        pair.keep(is_kept=True)

    def _stop(self, pair: EmbeddedPair) -> None:
        pair.keep(is_kept=False)
        pair.stop()
        self.stdout.write("PostgreSQL and Valkey are stopped. Their data stay.")

    def _status(self, pair: EmbeddedPair) -> None:
        running = {server: server.pid() if server.is_running() else None for server in pair.servers}
        for server, pid in running.items():
            self.stdout.write(
                f"{server.name}: {f'runs (process {pid})' if pid else 'does not run'}, data in {server.data}"
            )
        if not all(running.values()):
            raise SystemExit(NOT_RUNNING)

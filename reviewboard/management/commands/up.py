from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from reviewboard.launch import Launcher, Site
from reviewboard.launch_terminal import Terminal

MOST_WORKERS = 64


def add_site_arguments(parser: CommandParser) -> None:
    parser.add_argument("--host", default="127.0.0.1", help="address to listen at (default: %(default)s)")
    parser.add_argument("--port", type=int, default=8000, help="port to listen at (default: %(default)s)")
    parser.add_argument(
        "--workers",
        type=int,
        default=2,
        choices=range(1, MOST_WORKERS + 1),
        metavar="N",
        help=f"processes that call models, 1 to {MOST_WORKERS} (default: %(default)s)",
    )


class Command(BaseCommand):
    help = (
        "Run the whole site: servers (embedded ones, unless DATABASE_URL and CELERY_BROKER_URL name others), pages, "
        "workers and scheduler. Ctrl-C ends all of it in order."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        add_site_arguments(parser)

    def handle(self, *, host: str, port: int, workers: int, **_options: Any) -> None:
        launcher = Launcher(Site(host, port, workers))

        def announce(terminal: Terminal) -> None:
            terminal.say(f"\nReviewboard runs at {launcher.site.url}/ and its logs are in {launcher.logs}.")
            terminal.say("Make the first person with: uv run manage.py createsuperuser. Ctrl-C ends everything.")

        launcher.run(prepare=lambda _terminal: None, announce=announce)

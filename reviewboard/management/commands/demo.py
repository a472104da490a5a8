import sys
from argparse import BooleanOptionalAction
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser
from django.db import transaction
from django.urls import reverse

from queue_core.models import Lane
from reviewboard.embedded import ServiceFault
from reviewboard.launch import Launcher, Site
from reviewboard.launch_checks import LOOPBACK
from reviewboard.launch_terminal import Terminal
from reviewboard.management.commands.up import add_site_arguments


class Command(BaseCommand):
    help = (
        "Run the site with a staged outage to try it on, and print a sign-in link for each role. "
        "The links open once, and only on this machine."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        add_site_arguments(parser)
        parser.add_argument(
            "--fresh",
            action=BooleanOptionalAction,
            default=None,
            help="throw the demo's data away and stage a new outage (default: ask, when most deadlines are over)",
        )

    def handle(self, *, host: str, port: int, workers: int, fresh: bool | None, **_options: Any) -> None:
        _refuse_others(host)
        # Before the addresses are loaded, some of which only the demo has.
        settings.REVIEWBOARD_DEMO = True
        settings.QUEUE_CORE_CONNECTIONS = {"demo": "reviewboard.demo.connection.build"}
        launcher = Launcher(Site(host, port, workers), is_demo=True)
        launcher.run(
            prepare=lambda terminal: _prepare(terminal, fresh),
            announce=lambda terminal: _announce(terminal, launcher),
        )


def _refuse_others(host: str) -> None:
    if host not in LOOPBACK or not settings.ENVIRONMENT.is_local:
        raise ServiceFault(
            "The demo runs on this machine only, since its links sign in whoever opens them: "
            "leave out --host, and ALLOWED_HOSTS too. For others there is `manage.py up`."
        )


def _prepare(terminal: Terminal, fresh: bool | None) -> None:
    from reviewboard.demo import seed

    if not seed.is_seeded():
        _refuse_real_data()
        _fill(terminal, seed.prepare)
    elif _wants_fresh(terminal, fresh, is_worn=seed.is_worn()):
        _fill(terminal, seed.wipe, seed.prepare)


def _refuse_real_data() -> None:
    if Lane.objects.exists():
        raise ServiceFault(
            "This database holds lanes that are not the demo's, and the demo would mix with them. "
            "Set REVIEWBOARD_VAR to another folder (or DATABASE_URL to an empty database) and start again."
        )


def _fill(terminal: Terminal, *acts: Callable[..., None]) -> None:
    """Whole or not at all: a demo that was ended half-way is none, and is filled by the next start."""
    terminal.say("  Staging an outage:")
    with transaction.atomic():
        for act in acts[:-1]:
            act()
        acts[-1](lambda text: terminal.say(f"    {text}"))


def _wants_fresh(terminal: Terminal, fresh: bool | None, *, is_worn: bool) -> bool:
    if fresh is not None or not is_worn:
        return bool(fresh)
    terminal.say("More than half of the demo's deadlines are over, so most of its tickets can no longer be decided.")
    if not sys.stdin.isatty():
        terminal.say("Start with --fresh to throw its data away and stage a new outage.")
        return False
    return terminal.asks("Throw the demo's data away and stage a new outage?")


def _announce(terminal: Terminal, launcher: Launcher) -> None:
    from reviewboard.demo.people import CAST
    from reviewboard.models import Person
    from reviewboard.views.demo_signin import make_token

    people = Person.objects.in_bulk([part.username for part in CAST], field_name="username")
    terminal.say("\nThe demo runs. Each link signs in once, on this machine:\n")
    for part in CAST:
        person = people.get(part.username)
        if person is not None:
            path = reverse("demo_sign_in", args=[make_token(person)])
            terminal.say(f"  {part.role:<14} {launcher.site.url}{path}")
    terminal.say(f"\nLogs are in {launcher.logs}. Ctrl-C ends everything; the data stay for the next start.")
    launcher.close_connections()

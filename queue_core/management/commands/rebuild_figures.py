"""Make the kept figures anew from the ledger."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from queue_core.clock import DATABASE_CLOCK
from queue_core.figures.rebuilding import CHUNK, Step, rebuild

MOST = 200_000


class Command(BaseCommand):
    help = "Make the kept figures of all lanes anew from the ledger, in short steps, while everything else goes on."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--chunk", type=int, default=CHUNK, help=f"rows a step, from 1 to {MOST} (default {CHUNK})")

    def handle(self, *_args: str, **options: Any) -> None:
        if not 1 <= options["chunk"] <= MOST:
            raise CommandError(f"--chunk is from 1 to {MOST}.")
        number = rebuild(clock=DATABASE_CLOCK, chunk=options["chunk"], on_step=self._tell)
        self.stdout.write(
            ngettext(
                "The figures of %(number)d lane say what the ledger says.",
                "The figures of %(number)d lanes say what the ledger says.",
                number,
            )
            % {"number": number}
        )

    def _tell(self, step: Step) -> None:
        if self.stderr.isatty():
            self.stderr.write("\r" + _("%(what)s: %(number)d") % {"what": step.what, "number": step.number}, ending="")

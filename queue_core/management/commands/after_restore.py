"""`manage.py after_restore`: what must be done before workers start on a restored database."""

import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import connection
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from queue_core.clock import DATABASE_CLOCK
from queue_core.models import Job, Lane
from queue_core.restore import Restored, after_restore
from queue_core.states import JobState

HELP = """
Run it after a failover or a restore, while workers and scheduler are stopped. Puts every lane on hold, raises the fence
of every LEASED job, so that no answer from the time that was lost can be committed, and leaves an attempt that says
that its effect is unknown. Safe to run twice. A lead starts each lane again by its probe.
"""


class Command(BaseCommand):
    help = HELP

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--yes", action="store_true", help=_("Do not ask for confirmation."))

    def handle(self, *_args: Any, yes: bool, **_options: Any) -> None:
        if not yes:
            self._confirm()
        number = 0
        for done in after_restore(clock=DATABASE_CLOCK):
            number += 1
            self.stdout.write(_said(done))
        self.stdout.write(
            ngettext(
                "%(count)d lane is on hold until a lead starts its probe. Now run audit_ledger.",
                "%(count)d lanes are on hold until a lead starts their probes. Now run audit_ledger.",
                number,
            )
            % {"count": number}
        )

    def _confirm(self) -> None:
        if not sys.stdin.isatty():
            raise CommandError(_("There is nobody to ask for confirmation here: give --yes."))
        text = _(
            "In the database “%(name)s”: put all %(lanes)d lanes on hold, and raise the fences of %(leased)d "
            "LEASED jobs? Answer yes to go on: "
        )
        leased = Job.objects.filter(state=JobState.LEASED).count()
        values = {"name": connection.settings_dict["NAME"], "lanes": Lane.objects.count(), "leased": leased}
        if input(text % values).strip() != "yes":
            raise CommandError(_("Nothing was changed."))


def _said(done: Restored) -> str:
    text = (
        _("%(lane)s: put on hold. Jobs that wait again: %(waiting)d; to be taken over: %(for_takeover)d.")
        if done.is_held_now
        else _("%(lane)s: on hold already. Jobs that wait again: %(waiting)d; to be taken over: %(for_takeover)d.")
    )
    return text % {"lane": done.lane.name, "waiting": done.left.waiting, "for_takeover": done.left.for_takeover}

"""manage.py erase: the content of tickets blanked for good, as the page of a ticket does it."""

import csv
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from queue_core.clock import DATABASE_CLOCK
from queue_core.contract.erase import Erased, EraseOutcome
from queue_core.errors import InvalidRequest
from queue_core.people import keeping

HELP = """
Blanks what tickets held of their content, in all revisions, with what models answered and people noted about it.
Decisions, reason codes and the audit stay, where the erasure stands as the system's own act with its --reason. What
waits for the model is withdrawn; what a preservation hold keeps is left, and said.
Name the tickets of one source, or give a file of all that a person has: a line of CSV each, source and ticket.
Begin with --dry-run: it does the same and undoes it. Ends with 1 if a ticket was kept or is not there.
"""


class Command(BaseCommand):
    help = HELP

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("ticket", nargs="*", help=_("What the source calls the ticket."))
        parser.add_argument("--source", help=_("The source of the tickets named."))
        parser.add_argument("--file", help=_("A file of CSV, source and ticket a line, or - for standard input."))
        parser.add_argument("--reason", required=True, help=_("The ground. It stands in the content's place."))
        parser.add_argument("--dry-run", action="store_true", help=_("Change nothing; say what would be erased."))
        parser.add_argument("--yes", action="store_true", help=_("Do not ask for confirmation."))

    def handle(self, *_args: Any, reason: str, dry_run: bool, yes: bool, **options: Any) -> None:
        if not (dry_run or yes):
            _confirm()
        erased = left = 0
        for number, (source, name) in enumerate(_named(options), start=1):
            try:
                done = keeping.erase_by_name(source, name, ground=reason, is_trial=dry_run, clock=DATABASE_CLOCK)
            except InvalidRequest as mistake:
                raise CommandError(f"--reason: {mistake}") from mistake
            erased += done.outcome == EraseOutcome.ERASED
            left += done.outcome in (EraseOutcome.PRESERVED, EraseOutcome.MISSING)
            self.stdout.write(f"{number}: {source!a} {name!a}: {_said(done, is_trial=dry_run)}")
        self.stdout.write(_summed(erased, is_trial=dry_run))
        if left:
            raise CommandError(
                ngettext("%(count)d ticket was not erased.", "%(count)d tickets were not erased.", left)
                % {"count": left}
            )


def _named(options: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Source and name of each ticket. Raises CommandError for a call or a line that names none."""
    if options["file"] is None:
        if not options["ticket"] or not options["source"]:
            raise CommandError(_("Name tickets and their --source, or give a --file."))
        yield from ((options["source"], ticket) for ticket in options["ticket"])
        return
    if options["ticket"]:
        raise CommandError(_("Name tickets or give a --file, not both."))
    with _opened(options["file"]) as lines:
        try:
            for number, row in enumerate(csv.reader(lines), start=1):
                if len(row) != 2 or not all(row) or "\0" in "".join(row):
                    raise CommandError(_("Line %(number)d: give source and ticket.") % {"number": number})
                yield row[0], row[1]
        except (UnicodeDecodeError, csv.Error) as fault:
            raise CommandError(f"{options['file']}: {fault}") from fault


def _opened(name: str) -> Any:
    if name == "-":
        return nullcontext(sys.stdin)
    try:
        return Path(name).open(encoding="utf-8-sig", newline="")
    except OSError as fault:
        raise CommandError(f"{name}: {fault.strerror}") from fault


def _confirm() -> None:
    if not sys.stdin.isatty():
        raise CommandError(_("There is nobody to ask for confirmation here: give --yes."))
    if input(_("Erase the content of these tickets for good? Answer yes to go on: ")).strip() != "yes":
        raise CommandError(_("Nothing was changed."))


def _said(erased: Erased, *, is_trial: bool) -> str:
    if erased.until is not None:
        return _("kept for a lawful reason until %(until)s") % {"until": erased.until.isoformat(timespec="seconds")}
    if erased.outcome == EraseOutcome.MISSING:
        return _("no such ticket")
    if erased.outcome == EraseOutcome.ALREADY:
        return _("nothing is left to erase")
    if is_trial:
        text = ngettext("%(count)d revision would be erased", "%(count)d revisions would be erased", erased.revisions)
    else:
        text = ngettext("%(count)d revision erased", "%(count)d revisions erased", erased.revisions)
    return text % {"count": erased.revisions}


def _summed(erased: int, *, is_trial: bool) -> str:
    if is_trial:
        text = ngettext(
            "%(count)d ticket would be erased. Nothing was changed.",
            "%(count)d tickets would be erased. Nothing was changed.",
            erased,
        )
    else:
        text = ngettext("%(count)d ticket was erased.", "%(count)d tickets were erased.", erased)
    return text % {"count": erased}

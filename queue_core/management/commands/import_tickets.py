"""manage.py import_tickets: NDJSON into the queue."""

import json
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from django.core.management.base import BaseCommand, CommandError
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from queue_core.clock import DATABASE_CLOCK
from queue_core.errors import ConfigurationFault
from queue_core.import_lanes import LaneFinder
from queue_core.progress import Progress
from queue_core.states import AddOutcome
from queue_core.ticket_file import lines
from queue_core.ticket_import import REFUSED, Account, Importer, Refusal

#: Printed as they occur; a file with more wrong lines than these is read better in its report.
MOST_PRINTED = 20

HELP = """
Takes in tickets from NDJSON, one JSON object a line: lane, ticket, revision, evidence; and, if known, deadline,
submitted_at, severity, category, source, source_kind, exposure, deadline_kind, restricted, replaces.
Times are ISO 8601 with a zone, or relative to the import: -90s, +30m, +24h, +2d.
A line that is wrong is refused with its number, field and reason; the others go in. The same file again adds nothing.
Ends with 0 if every line went in or was known, with 1 if a line was refused or named another revision than the
current one.
"""


class Command(BaseCommand):
    help = HELP

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", help=_("The file, or - for standard input."))
        parser.add_argument("--source", default="import", help=_("The source of lines that name none."))
        parser.add_argument("--create-lanes", action="store_true", help=_("Make the lanes that do not exist, on hold."))
        parser.add_argument("--connection", help=_("The model connection of new lanes. Needed if there are several."))
        parser.add_argument("--report", type=Path, help=_("Write lines that did not go in to this file, as NDJSON."))

    def handle(self, *_args: Any, **options: Any) -> None:
        source = options["source"].strip()
        if not 0 < len(source) <= 64:
            raise CommandError(_("--source is a name of 1 to 64 characters."))
        find_lane = LaneFinder(create=options["create_lanes"], connection=options["connection"], clock=DATABASE_CLOCK)
        with ExitStack() as stack:
            stream = stack.enter_context(_opened(options["file"]))
            refusals = stack.enter_context(_Refusals.writing(self.stderr, options["report"], options["file"]))
            importer = Importer(find_lane, source, DATABASE_CLOCK, refusals.add)
            progress = stack.enter_context(Progress(sys.stderr, stream))
            try:
                for line_reached in importer.take(lines(stream)):
                    progress.show(line_reached)
            except ConfigurationFault as fault:
                raise CommandError(str(fault)) from fault
        self._tell(importer.account, find_lane.made, refusals)
        if importer.account.left_out:
            sys.exit(1)

    def _tell(self, account: Account, made: list[str], refusals: "_Refusals") -> None:
        counts = account.counts
        for name in made:
            self.stdout.write(
                _("Lane “%(name)s” was made. It is on hold until a lead starts its probe.") % {"name": name}
            )
        if refusals.unprinted:
            text = ngettext(
                "%(count)d more line did not go in.", "%(count)d more lines did not go in.", refusals.unprinted
            )
            self.stderr.write(text % {"count": refusals.unprinted})
        self.stdout.write(
            _(
                "%(lines)d lines: %(stored)d stored, %(known)d known, %(superseded)d superseded, "
                "%(conflict)d in conflict, %(refused)d refused."
            )
            % {
                "lines": account.lines,
                "stored": counts[AddOutcome.STORED],
                "known": counts[AddOutcome.KNOWN],
                "superseded": counts[AddOutcome.SUPERSEDED],
                "conflict": counts[AddOutcome.REVISION_CONFLICT],
                "refused": counts[REFUSED],
            }
        )


@contextmanager
def _opened(name: str) -> Iterator[BinaryIO]:
    if name == "-":
        yield sys.stdin.buffer
        return
    try:
        stream = Path(name).open("rb")  # noqa: SIM115  It is closed below.
    except OSError as error:
        raise CommandError(_("%(file)s cannot be read: %(error)s") % {"file": name, "error": error.strerror}) from error
    with stream:
        yield stream


class _Refusals:
    """Lines that did not go in: the first ones printed, all of them in the report."""

    def __init__(self, out: Any, report: TextIO | None) -> None:
        self._out = out
        self._report = report
        self._count = 0

    @classmethod
    @contextmanager
    def writing(cls, out: Any, report: Path | None, source: str) -> Iterator["_Refusals"]:
        if report is None:
            yield cls(out, None)
            return
        if source != "-" and report.exists() and report.samefile(source):
            raise CommandError(_("The report would overwrite the file that is imported."))
        try:
            stream = report.open("w", encoding="utf-8")
        except OSError as error:
            text = _("%(file)s cannot be written: %(error)s")
            raise CommandError(text % {"file": report, "error": error.strerror}) from error
        with stream:
            yield cls(out, stream)

    @property
    def unprinted(self) -> int:
        return max(self._count - MOST_PRINTED, 0)

    def add(self, refusal: Refusal) -> None:
        self._count += 1
        if self._report is not None:
            self._report.write(json.dumps(asdict(refusal), ensure_ascii=False) + "\n")
        if self._count > MOST_PRINTED:
            return
        text = _("Line %(line)d, %(field)s: %(reason)s") if refusal.field else _("Line %(line)d: %(reason)s")
        self._out.write(text % asdict(refusal))

"""manage.py import_tickets: NDJSON or CSV into the queue."""

import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from django.core.management.base import BaseCommand, CommandError
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from queue_core.clock import DATABASE_CLOCK
from queue_core.errors import ConfigurationFault
from queue_core.import_lanes import LaneFinder, imagined, maker
from queue_core.progress import Progress
from queue_core.states import AddOutcome
from queue_core.ticket_csv import DELIMITERS, columns_of, read_header
from queue_core.ticket_encoding import as_utf8
from queue_core.ticket_foresight import FileMemory, Foreseeing
from queue_core.ticket_formats import Csv, FileKind, Ndjson, TicketFormat
from queue_core.ticket_import import REFUSED, Account, Importer, Intake, Receiving
from queue_core.ticket_refused import Refusal

#: Printed as they occur; a file with more wrong lines than these is read better in its report.
MOST_PRINTED = 20

HELP = """
Takes in tickets from NDJSON, one JSON object a line, or from CSV with a header: lane, ticket, revision, evidence; and
if known deadline, submitted_at, severity, category, source, source_kind, exposure, deadline_kind, restricted, replaces.
Times are ISO 8601 with a zone, or relative to the import: -90s, +30m, +24h, +2d.
A line that is wrong is refused with its number, field and reason; the others go in. The same file again adds nothing,
so that an import that was cut short is simply started again. Mend the lines of a --report and import that.
Ends with 0 if every line went in or was known, with 1 if a line was refused or named another revision than the
current one.
"""


class Command(BaseCommand):
    help = HELP

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", help=_("The file, or - for standard input."))
        parser.add_argument("--source", default="import", help=_("The source of lines that name none."))
        parser.add_argument("--lane", help=_("The lane of lines that name none."))
        parser.add_argument("--revision", help=_("The revision of lines that name none."))
        parser.add_argument("--create-lanes", action="store_true", help=_("Make the lanes that do not exist, on hold."))
        parser.add_argument("--connection", help=_("The model connection of new lanes. Needed if there are several."))
        parser.add_argument("--report", type=Path, help=_("Write lines that did not go in to this file, to be mended."))
        parser.add_argument("--dry-run", action="store_true", help=_("Write nothing; say what an import would do."))
        parser.add_argument(
            "--format", choices=list(FileKind), help=_("Without it: CSV for a file named .csv or .tsv, else NDJSON.")
        )
        parser.add_argument("--encoding", help=_("Without it: what its byte-order mark says, else UTF-8."))
        parser.add_argument(
            "--delimiter", help=_("Of CSV: one character, or “tab”. Without it: the one that fits the header.")
        )
        parser.add_argument(
            "--map",
            action="append",
            default=[],
            metavar=_("THEIRS=OURS"),
            help=_(
                "A column of CSV and our field, evidence.KEY for a part of the evidence, or nothing to leave it out."
            ),
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        is_dry_run = options["dry_run"]
        make = maker(options["connection"], DATABASE_CLOCK) if options["create_lanes"] else None
        find_lane = LaneFinder(imagined if make and is_dry_run else make)
        source = _name(options["source"], "--source")
        with ExitStack() as stack:
            opened = stack.enter_context(_opened(options["file"]))
            try:
                stream, _encoding = as_utf8(opened, options["encoding"])
                format_ = _format(stream, options)
                refusals = stack.enter_context(
                    _Refusals.writing(self.stderr, options["report"], options["file"], format_)
                )
                intake: Intake = Receiving(DATABASE_CLOCK)
                if is_dry_run:
                    intake = Foreseeing(DATABASE_CLOCK, stack.enter_context(FileMemory()))
                importer = Importer(format_.parse, find_lane, intake, source, DATABASE_CLOCK, refusals.add)
                progress = stack.enter_context(Progress(sys.stderr, opened))
                for line_reached in importer.take(format_.lines(stream)):
                    progress.show(line_reached)
            except ConfigurationFault as fault:
                raise CommandError(str(fault)) from fault
        self._tell(importer.account, find_lane.made, refusals, is_dry_run=is_dry_run)
        if importer.account.left_out:
            sys.exit(1)

    def _tell(self, account: Account, made: list[str], refusals: "_Refusals", *, is_dry_run: bool) -> None:
        made_text = _("Lane “%(name)s” was made. It is on hold until a lead starts its probe.")
        if is_dry_run:
            made_text = _("Lane “%(name)s” would be made.")
        for name in made:
            self.stdout.write(made_text % {"name": name})
        if refusals.unprinted:
            text = ngettext(
                "%(count)d more line did not go in.", "%(count)d more lines did not go in.", refusals.unprinted
            )
            self.stderr.write(text % {"count": refusals.unprinted})
        self.stdout.write(_counted(account))
        if is_dry_run:
            self.stdout.write(_("This was a dry run: nothing was written."))


def _counted(account: Account) -> str:
    counts = account.counts
    text = _(
        "%(lines)d lines: %(stored)d stored, %(known)d known, %(superseded)d superseded, "
        "%(conflict)d in conflict, %(refused)d refused."
    )
    return text % {
        "lines": account.lines,
        "stored": counts[AddOutcome.STORED],
        "known": counts[AddOutcome.KNOWN],
        "superseded": counts[AddOutcome.SUPERSEDED],
        "conflict": counts[AddOutcome.REVISION_CONFLICT],
        "refused": counts[REFUSED],
    }


def _format(stream: BinaryIO, options: dict[str, Any]) -> TicketFormat:
    """The file's format; of CSV the header is read. Raises ConfigurationFault for what does not fit together."""
    defaults = {name: _name(options[name], f"--{name}") for name in ("lane", "revision") if options[name] is not None}
    mapping = _mapping(options["map"])
    kind = options["format"] or _kind_of(options["file"])
    if kind == FileKind.NDJSON:
        if mapping or options["delimiter"]:
            raise ConfigurationFault(_("--map and --delimiter are for CSV. Say --format csv if this is such a file."))
        return Ndjson(defaults)
    header = read_header(stream, _delimiter(options["delimiter"]), list(mapping))
    return Csv(columns_of(header, mapping, defaults))


def _kind_of(name: str) -> FileKind:
    return FileKind.CSV if Path(name).suffix.lower() in (".csv", ".tsv") else FileKind.NDJSON


def _name(text: str, option: str) -> str:
    text = text.strip()
    if not 0 < len(text) <= 64:
        raise CommandError(_("%(option)s is a name of 1 to 64 characters.") % {"option": option})
    return text


def _delimiter(text: str | None) -> str | None:
    by_name = {name: one for one, name in DELIMITERS.items()}
    return by_name.get(text, text) if text else None


def _mapping(pairs: list[str]) -> dict[str, str]:
    mapping: dict[str, str] = {}
    for pair in pairs:
        # The last sign parts: a header may hold one, our names do not.
        theirs, sign, ours = pair.rpartition("=")
        if not sign or not theirs or theirs in mapping:
            raise ConfigurationFault(
                _("--map is THEIRS=OURS, once for each column; this is “%(pair)s”.") % {"pair": pair}
            )
        mapping[theirs] = ours.strip()
    return mapping


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

    def __init__(self, out: Any, report: BinaryIO | None, format_: TicketFormat) -> None:
        self._out = out
        self._report = report
        self._format = format_
        self._count = 0

    @classmethod
    @contextmanager
    def writing(cls, out: Any, report: Path | None, source: str, format_: TicketFormat) -> Iterator["_Refusals"]:
        if report is None:
            yield cls(out, None, format_)
            return
        if source != "-" and report.exists() and report.samefile(source):
            raise CommandError(_("The report would overwrite the file that is imported."))
        try:
            stream = report.open("wb")
        except OSError as error:
            text = _("%(file)s cannot be written: %(error)s")
            raise CommandError(text % {"file": report, "error": error.strerror}) from error
        with stream:
            stream.write(format_.report_head())
            yield cls(out, stream, format_)

    @property
    def unprinted(self) -> int:
        return max(self._count - MOST_PRINTED, 0)

    def add(self, refusal: Refusal) -> None:
        self._count += 1
        if self._report is not None:
            self._report.write(self._format.report_line(refusal))
        if self._count > MOST_PRINTED:
            return
        text = _("Line %(line)d, %(field)s: %(reason)s") if refusal.field else _("Line %(line)d: %(reason)s")
        self._out.write(text % {"line": refusal.line, "field": refusal.field, "reason": refusal.reason})

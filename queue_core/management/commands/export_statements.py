"""manage.py export_statements: a statement of reasons for each rejection."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from queue_core.exports import statements
from queue_core.exports.files import opened
from queue_core.exports.tables import WRITERS
from queue_core.management.exporting import add_options, chosen, told_plainly


class Command(BaseCommand):
    help = (
        "Writes a statement of reasons for each rejection: ground, clause, facts, where the notice came from, what was "
        "automated, and the way to appeal. With --eu MAPPING in the words of the EU's transparency database."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--format", choices=sorted(WRITERS), default="ndjson")
        parser.add_argument("--redress", default="", help=_("How the author may appeal, for instance an address."))
        parser.add_argument("--eu", type=Path, metavar="MAPPING", help=_("A JSON file: see docs/statements.md."))
        add_options(parser)

    def handle(self, *_args: Any, **options: Any) -> None:
        with told_plainly():
            what = chosen(options)
            table, rows = statements.TABLE, statements.rows(what.period, lanes=what.lanes, redress=options["redress"])
            if options["eu"] is not None:
                mapping = statements.EuMapping.read(options["eu"])
                table, rows = statements.EU_TABLE, statements.eu_rows(what.period, lanes=what.lanes, mapping=mapping)
            with opened(what.output) as stream:
                count = WRITERS[options["format"]](stream, table, rows)
        text = ngettext("%(count)d statement written.", "%(count)d statements written.", count)
        self.stderr.write(text % {"count": count})

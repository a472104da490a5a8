"""manage.py export_decisions: decisions of a time and of lanes, as NDJSON, CSV or Parquet."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand
from django.utils.translation import ngettext

from queue_core.exports import decisions
from queue_core.exports.files import opened
from queue_core.exports.tables import WRITERS
from queue_core.management.exporting import add_options, chosen, told_plainly


class Command(BaseCommand):
    help = (
        "Writes one row for each decision, corrections and recalls included: what it was, on what ground, by model or "
        "person, under which policy and stage. Nothing of the content, and no person's name."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--format", choices=sorted(WRITERS), default="ndjson")
        add_options(parser)

    def handle(self, *_args: Any, **options: Any) -> None:
        with told_plainly():
            what = chosen(options)
            with opened(what.output) as stream:
                rows = decisions.rows(what.period, lanes=what.lanes)
                count = WRITERS[options["format"]](stream, decisions.TABLE, rows)
        # On the error stream, since the other may be the export.
        text = ngettext("%(count)d decision written.", "%(count)d decisions written.", count)
        self.stderr.write(text % {"count": count})

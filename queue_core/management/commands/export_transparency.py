"""manage.py export_transparency: the counts of a transparency report."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from queue_core.exports import transparency
from queue_core.exports.files import opened
from queue_core.management.exporting import add_options, chosen, told_plainly


class Command(BaseCommand):
    help = (
        "Writes counts of decisions by source, category, automation and verdict with their median time, appeals and "
        "what came of them, recalls, and the error rate of blind samples. One JSON object."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_options(parser)

    def handle(self, *_args: Any, **options: Any) -> None:
        with told_plainly():
            what = chosen(options)
            found = transparency.report(what.period, lanes=what.lanes)
            with opened(what.output) as stream:
                stream.write(json.dumps(found, ensure_ascii=False, indent=2).encode() + b"\n")

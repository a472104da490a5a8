"""`manage.py bench`: how fast the contract is, beside the least SQL that could do such work."""

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from queue_core.bench import report
from queue_core.bench.measures import CHURN, PARTS, ROUNDS, SLICE, Size, measure
from queue_core.errors import BenchFault

DEFAULT = Size()
ONLY = f"some of its parts, which are {', '.join(PARTS)}; only the last two fill the large backlog"
#: Per option: the least and the most.
BOUNDS = {"jobs": (50, 1_000_000), "backlog": (100, 10_000_000), "batch": (1, 500), "workers": (1, 32)}
#: Below this many jobs a turn is a try of the bench itself: then the timed parts are as short.
TRIAL, TRIAL_SECONDS = 2000, 0.5


class Command(BaseCommand):
    help = (
        "Measures receive, claim and complete beside the least SQL that could do such work, in the same run, in turns; "
        "and the whole path through Celery. Works in schemas of its own, which are gone when it ends; the site's "
        "workers should rest meanwhile. Figures depend on the machine and its neighbours: only the ratios count."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--jobs", type=int, default=DEFAULT.jobs, help="the most jobs of one path in one turn")
        parser.add_argument("--backlog", type=int, default=DEFAULT.backlog, help="jobs that wait in the large backlog")
        parser.add_argument("--batch", type=int, default=DEFAULT.batch, help="jobs of a large batch")
        parser.add_argument("--workers", type=int, default=DEFAULT.workers, help="clients at once")
        parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, metavar="PART", help=ONLY)
        parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")

    def handle(self, *_args: Any, **options: Any) -> None:
        for name, (least, most) in BOUNDS.items():
            if not least <= options[name] <= most:
                raise CommandError(f"--{name} is from {least} to {most}.")
        size = _size(**{name: options[name] for name in BOUNDS})
        try:
            found = measure(size, parts=options["only"], say=self._say)
        except BenchFault as fault:
            raise CommandError(str(fault)) from None
        self._end_line()
        if options["json"]:
            self.stdout.write(json.dumps(report.as_object(found, size), indent=1))
        else:
            self.stdout.write("\n".join(report.as_table(found)))

    def _say(self, text: str) -> None:
        is_terminal = self.stderr.isatty()
        self.stderr.write(f"\r\033[K{text}" if is_terminal else text, ending="" if is_terminal else "\n")
        self.stderr.flush()

    def _end_line(self) -> None:
        if self.stderr.isatty():
            self.stderr.write("\r\033[K", ending="")


def _size(*, jobs: int, backlog: int, batch: int, workers: int) -> Size:
    is_trial = jobs < TRIAL
    return Size(
        jobs=jobs,
        backlog=backlog,
        batch=batch,
        workers=workers,
        churn=TRIAL_SECONDS if is_trial else CHURN,
        slice=TRIAL_SECONDS if is_trial else SLICE,
        rounds=1 if is_trial else ROUNDS,
    )

"""`manage.py audit_ledger`: prove what must hold between the rows of the ledger."""

import time
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from queue_core.ledger import Report, Step, audit
from queue_core.ledger.auditor import CHUNK, MOST_LISTED

LARGEST_CHUNK = 20_000
#: Seconds between two lines about one table, where there is no terminal to draw on.
PACE = 10.0

HELP = """
Reads the whole ledger, a few thousand rows at a time, and proves the rules that hold between its rows: fences and
attempts, results and decisions, items and assignments, second looks and appeals, what was taken back, recalls and bulk
acts by their rows, imports, messages and their numbers, evidence and its seal, erasures and preservation holds, and the
sum of all revisions. Changes nothing, holds no lock, and may run beside the live system: what looks wrong is looked at
again before it is reported. Ends with 1 and a list if something is wrong.
"""


class Command(BaseCommand):
    help = HELP

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--chunk", type=int, default=CHUNK, help=_("Rows in one transaction."))
        parser.add_argument("--list", type=int, default=MOST_LISTED, help=_("The most findings that are listed."))

    def handle(self, *_args: Any, **options: Any) -> None:
        if not 1 <= options["chunk"] <= LARGEST_CHUNK or options["list"] < 0:
            raise CommandError(_("--chunk is from 1 to %(most)d, --list from 0.") % {"most": LARGEST_CHUNK})
        report = audit(chunk=options["chunk"], most_listed=options["list"], on_step=self._step_teller())
        self._tell(report)
        if not report.is_clean:
            # CommandError's returncode is what call_command's callers see too, which sys.exit would end.
            raise CommandError(_wrong(report), returncode=1)

    def _step_teller(self) -> Any:
        is_terminal, told = self.stderr.isatty(), time.monotonic()

        def tell(step: Step) -> None:
            nonlocal told
            if not (step.is_last or is_terminal or time.monotonic() - told >= PACE):
                return
            told = time.monotonic()
            text = _("%(table)s: %(rows)d rows, %(share)d %%") % {
                "table": step.model._meta.verbose_name_plural,
                "rows": step.rows,
                "share": int(step.share * 100),
            }
            start, end = ("\r\033[K", "\n" if step.is_last else "") if is_terminal else ("", "\n")
            self.stderr.write(start + text, ending=end)
            self.stderr.flush()

        return tell

    def _tell(self, report: Report) -> None:
        for one in report.findings:
            text = _("%(table)s %(key)d: %(says)s (%(code)s)")
            values = {"table": one.rule.model._meta.verbose_name, "key": one.key, "says": one.rule.says}
            self.stdout.write(text % (values | {"code": one.rule.code}))
        unlisted = report.totals.total() - len(report.findings)
        if unlisted:
            self.stdout.write(ngettext("%(count)d more.", "%(count)d more.", unlisted) % {"count": unlisted})
        for code, number in report.totals.most_common():
            self.stdout.write(f"{code}: {number}")
        sums = report.sums
        text = _(
            "%(added)d revisions: %(decided)d decided, %(open_items)d with people, %(not_reviewed)d not reviewed yet, "
            "%(gone)d gone, %(lost)d lost."
        )
        names = ("added", "decided", "open_items", "not_reviewed", "gone", "lost")
        self.stdout.write(text % {name: getattr(sums, name) for name in names})
        if report.is_clean:
            self.stdout.write(
                ngettext("%(rows)d row: nothing is wrong.", "%(rows)d rows: nothing is wrong.", report.rows)
                % {"rows": report.rows}
            )


def _wrong(report: Report) -> str:
    number = report.totals.total()
    text = ngettext("%(count)d thing is wrong in the ledger.", "%(count)d things are wrong in the ledger.", number)
    return text % {"count": number}

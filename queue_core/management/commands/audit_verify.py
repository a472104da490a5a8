"""`manage.py audit_verify`: read the audit's chain and say up to where it is unbroken."""

import re
from argparse import ArgumentParser, ArgumentTypeError
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from queue_core.audit import Head, Verdict, verify
from queue_core.audit.verifying import Break

HELP = """
Reads the audit's chain of hashes from its beginning and says up to which entry it is unbroken. Changes nothing and may
run beside the live system. Ends with 1 where an entry was changed, removed or slipped in. Keep the head that it prints
somewhere else: with --expect, a chain that was cut off or written anew is found too.
"""
HEAD = re.compile(r"(?P<number>[1-9][0-9]{0,17}):(?P<seal>[0-9a-f]{64})")


class Command(BaseCommand):
    help = HELP

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--expect", type=_head, metavar=_("NUMBER:SEAL"), help=_("A head that an earlier run printed.")
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        verdict = verify(expected=options["expect"], on_step=self._tell_step)
        self._tell(verdict)
        if verdict.how is not None:
            raise CommandError(_wrong(verdict), returncode=1)

    def _tell_step(self, number: int) -> None:
        if self.stderr.isatty():
            self.stderr.write("\r\033[K" + _("entry %(number)d") % {"number": number}, ending="")
            self.stderr.flush()

    def _tell(self, verdict: Verdict) -> None:
        if self.stderr.isatty():
            self.stderr.write("\r\033[K", ending="")
        if verdict.intact_at is None:
            self.stdout.write(_("No entry is sealed yet."))
        else:
            text = _("Unbroken up to entry %(number)d of %(at)s.")
            at = f"{verdict.intact_at:%Y-%m-%d %H:%M:%S} UTC"
            self.stdout.write(text % {"number": verdict.intact.number, "at": at})
            self.stdout.write(
                _("Head: %(number)d:%(seal)s") % {"number": verdict.intact.number, "seal": verdict.intact.seal}
            )
        if verdict.oldest_unsealed is not None:
            text = ngettext(
                "%(count)d entry is not sealed yet, since %(at)s.",
                "%(count)d entries are not sealed yet, the oldest since %(at)s.",
                verdict.unsealed,
            )
            at = f"{verdict.oldest_unsealed:%Y-%m-%d %H:%M:%S} UTC"
            self.stdout.write(text % {"count": verdict.unsealed, "at": at})


def _wrong(verdict: Verdict) -> str:
    texts = {
        Break.MISSING: _("Entry %(number)d is missing."),
        Break.CHANGED: _("Entry %(number)d or its seal was changed, or an entry before it was slipped in."),
        Break.CUT: _("The chain ends before the head that is expected: entry %(number)d is missing."),
        Break.OTHER: _("Entry %(number)d has another seal than the head that is expected: the chain was written anew."),
    }
    assert verdict.how is not None
    return texts[verdict.how] % {"number": verdict.broken_at}


def _head(text: str) -> Head:
    found = HEAD.fullmatch(text)
    if found is None:
        raise ArgumentTypeError(_("Write it as it was printed: a number, a colon, and 64 hexadecimal digits."))
    return Head(int(found["number"]), found["seal"])

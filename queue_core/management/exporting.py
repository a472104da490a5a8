"""What the export commands share: their options, and their errors as one sentence."""

from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.core.management.base import CommandError
from django.utils.translation import gettext as _

from queue_core.clock import DATABASE_CLOCK
from queue_core.errors import ConfigurationFault, InvalidRequest
from queue_core.exports import Period
from queue_core.models import Lane


@dataclass(frozen=True, slots=True)
class Chosen:
    period: Period
    lanes: list[Lane]
    output: str


def add_options(parser: ArgumentParser) -> None:
    parser.add_argument("--since", default="", help=_("From this day (UTC) or time with a zone on."))
    parser.add_argument("--until", default="", help=_("Up to this day or time, which is not in it. Default: now."))
    parser.add_argument("--lane", action="append", default=[], help=_("Of this lane only; may be given several times."))
    parser.add_argument("--output", "-o", default="-", help=_("The file, or - for standard output."))


def chosen(options: dict[str, Any]) -> Chosen:
    """What the options name. Raises InvalidRequest."""
    period = Period.read(options["since"], options["until"], now=DATABASE_CLOCK.now())
    return Chosen(period, _lanes(options["lane"]), options["output"])


def _lanes(names: Sequence[str]) -> list[Lane]:
    lanes = Lane.objects.filter(name__in=names) if names else Lane.objects.all()
    found = list(lanes.order_by("name"))
    missing = sorted(set(names) - {lane.name for lane in found})
    if missing:
        raise InvalidRequest(_("There is no lane “%(name)s”.") % {"name": missing[0]}, field="lane")
    return found


@contextmanager
def told_plainly() -> Iterator[None]:
    try:
        yield
    except InvalidRequest as fault:
        raise CommandError(f"--{fault.field}: {fault}" if fault.field else str(fault)) from fault
    except ConfigurationFault as fault:
        raise CommandError(str(fault)) from fault
    except BrokenPipeError as error:
        raise CommandError(_("Whoever read the export went away before its end.")) from error

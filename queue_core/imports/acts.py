"""What people do with an uploaded file. Each act locks the run and judges the locked row; each is audited."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from queue_core import audit, wakeups
from queue_core.clock import Clock
from queue_core.errors import ConfigurationFault, InvalidRequest, NotPermitted
from queue_core.imports.reading import format_of, header_of
from queue_core.models import ImportRun, Lane
from queue_core.rights import may, require_somewhere
from queue_core.states import ENDED_IMPORTS, ImportState
from queue_core.ticket_formats import FileKind

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser

RIGHT = "import_tickets"


class Acted(StrEnum):
    DONE = "done"
    #: The run had gone on, or ended, before the act.
    NOT_NOW = "not_now"


@dataclass(frozen=True, slots=True)
class ActedOn:
    """What came of an act, with the run as it is now."""

    outcome: Acted
    run: ImportRun


@dataclass(frozen=True, slots=True)
class Settings:
    """How a file is to be read. `lane` and `revision` are for lines that name none."""

    source: str
    lane: Lane | None = None
    revision: str = ""
    delimiter: str = ""
    mapping: Mapping[str, str] | None = None


def visible_to(person: "AbstractUser") -> QuerySet[ImportRun]:
    """The runs a person may see: with the right on every lane all of them, else one's own."""
    require_somewhere(person, RIGHT)
    runs = ImportRun.objects.all()
    return runs if may(person, RIGHT) else runs.filter(by_id=person.pk)


@transaction.atomic
def settle(run_id: int, settings: Settings, *, person: "AbstractUser", clock: Clock) -> ActedOn:
    """Say how a file is to be read, and have it tried dry.

    Raises InvalidRequest for a header that the mapping does not fit, and NotPermitted for another's file: only who
    uploaded a file has seen its first rows.
    """
    run = _locked(run_id, person)
    if run.by_id != person.pk:
        raise NotPermitted(RIGHT)
    if settings.lane is not None and not may(person, RIGHT, settings.lane):
        raise InvalidRequest(_("There is no such lane."), field="lane")
    if run.state != ImportState.UPLOADED:
        return ActedOn(Acted.NOT_NOW, run)
    run.source, run.lane, run.revision = settings.source, settings.lane, settings.revision
    run.delimiter, run.mapping, run.header = settings.delimiter, dict(settings.mapping or {}), None
    try:
        if run.kind == FileKind.CSV:
            run.header = asdict(header_of(run))
        format_of(run)
    except ConfigurationFault as fault:
        raise InvalidRequest(str(fault), field="mapping") from fault
    return _set_to_work(run, ImportState.CHECKING, person, clock.now())


@transaction.atomic
def begin(run_id: int, *, person: "AbstractUser", clock: Clock) -> ActedOn:
    """Import a file that was tried dry."""
    run = _locked(run_id, person)
    if run.state != ImportState.CHECKED:
        return ActedOn(Acted.NOT_NOW, run)
    run.refusals.all().delete()
    return _set_to_work(run, ImportState.IMPORTING, person, clock.now())


@transaction.atomic
def change(run_id: int, *, person: "AbstractUser", clock: Clock) -> ActedOn:
    """Back to the settings, from a dry run that is over or under way."""
    run = _locked(run_id, person)
    if run.state not in (ImportState.CHECKING, ImportState.CHECKED):
        return ActedOn(Acted.NOT_NOW, run)
    _clear(run)
    run.state, run.asked_at, run.taken_at, run.foretold = ImportState.UPLOADED, clock.now(), None, None
    run.save()
    return ActedOn(Acted.DONE, run)


@transaction.atomic
def stop(run_id: int, *, person: "AbstractUser", clock: Clock) -> ActedOn:
    """End an import that is under way. What went in stays in; the batch at hand goes in whole or not at all."""
    run = _locked(run_id, person)
    if run.state != ImportState.IMPORTING:
        return ActedOn(Acted.NOT_NOW, run)
    return ActedOn(Acted.DONE, end(run, ImportState.STOPPED, now=clock.now(), person=person))


@transaction.atomic
def discard(run_id: int, *, person: "AbstractUser", clock: Clock) -> ActedOn:
    """Forget a file of which nothing went in."""
    run = _locked(run_id, person)
    if run.state in ENDED_IMPORTS or run.state == ImportState.IMPORTING:
        return ActedOn(Acted.NOT_NOW, run)
    return ActedOn(Acted.DONE, end(run, ImportState.DISCARDED, now=clock.now(), person=person))


@transaction.atomic
def take_report(run_id: int, *, person: "AbstractUser", clock: Clock) -> ImportRun:
    """The run whose refused lines a person is about to be given: they hold what the file held, so it is audited."""
    run = visible_to(person).select_related("lane").get(pk=run_id)
    after = {"file": run.name, "lines": run.refusals.count()}
    audit.record("import.report_taken", now=clock.now(), actor=person, subject=run, after=after)
    return run


def end(
    run: ImportRun, state: ImportState, *, now: datetime, person: "AbstractUser | None" = None, fault: str = ""
) -> ImportRun:
    """End a locked run, and forget its file at once. Its refused lines are kept a while, to be mended."""
    run.parts.all().delete()
    run.foreseen.all().delete()
    run.state, run.ended_at, run.held_by, run.held_until = state, now, "", None
    run.fault = fault[:500]
    run.save()
    after: dict[str, Any] = {"file": run.name, "state": state.value, **(run.counts or {})}
    audit.record("import.ended", now=now, actor=person, subject=run, reason=run.fault, after=after)
    return run


def _locked(run_id: int, person: "AbstractUser") -> ImportRun:
    """The run under its lock. Raises ImportRun.DoesNotExist, also for one that the person may not see."""
    return visible_to(person).select_for_update(no_key=True).get(pk=run_id)


def _clear(run: ImportRun) -> None:
    run.refusals.all().delete()
    run.foreseen.all().delete()
    run.held_by, run.held_until, run.takes = "", None, 0
    run.place, run.line, run.counts = 0, 0, {}


def _set_to_work(run: ImportRun, state: ImportState, person: "AbstractUser", now: datetime) -> ActedOn:
    _clear(run)
    run.state, run.asked_at, run.taken_at, run.moved_at = state, now, None, None
    run.save()
    after = {
        "file": run.name, "state": state.value, "source": run.source, "lane": run.lane.name if run.lane else None,
        "revision": run.revision or None, "mapping": run.mapping,
    }  # fmt: skip
    act = "import.checked" if state == ImportState.CHECKING else "import.begun"
    audit.record(act, now=now, actor=person, subject=run, lane=run.lane, after=after)
    wakeups.wake_import(run.pk)
    return ActedOn(Acted.DONE, run)

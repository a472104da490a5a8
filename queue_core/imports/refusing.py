"""Refused lines, kept to be mended, but for what must not be kept: restricted evidence, and content that was erased."""

from collections.abc import Sequence

from django.db import connection

from queue_core.errors import InvalidJob
from queue_core.models import Evidence, ImportRefusal, ImportRun
from queue_core.models.imports import digest_of
from queue_core.strict_json import check_text
from queue_core.ticket_foresight import Name
from queue_core.ticket_formats import TicketFormat
from queue_core.ticket_refused import Refusal

#: Shared: an erasure that is under way is waited for, and the next one finds the lines that are kept here.
LOCK = """
SELECT t.id, t.source, t.external_id
FROM queue_core_ticket t
JOIN unnest(%s::text[], %s::text[]) AS named(source, external_id) USING (source, external_id)
ORDER BY t.id FOR SHARE OF t
"""


def keep_refused(run: ImportRun, format_: TicketFormat, refused: Sequence[Refusal]) -> None:
    """Keep refused lines of a run, each under the name of its ticket, by which an erasure finds it.

    The caller is inside the transaction of the batch.
    """
    names = {one.line: _name(run, format_, one) for one in refused}
    erased = _erased({name for name in names.values() if name is not None})
    rows = []
    for one in refused:
        name = names[one.line]
        # What is restricted leaves in no file, and what was erased comes back in none: its sender has the original.
        is_kept = one.raw is not None and name not in erased and not format_.is_restricted(one.raw)
        rows.append(
            ImportRefusal(
                run=run,
                line=one.line,
                field=one.field[:64],
                reason=one.reason,
                outcome=one.outcome,
                raw=one.raw if is_kept else None,
                ticket=None if name is None else digest_of(*name),
            )
        )
    ImportRefusal.objects.bulk_create(rows)


def _name(run: ImportRun, format_: TicketFormat, refusal: Refusal) -> Name | None:
    if refusal.raw is None:
        return None
    source, external_id = format_.names(refusal.raw)
    return None if external_id is None else (source or run.source, external_id)


def _erased(names: set[Name]) -> set[Name | None]:
    """Those of the names whose tickets had content erased."""
    asked = sorted(name for name in names if _may_be_stored("".join(name)))
    if not asked:
        return set()
    with connection.cursor() as cursor:
        cursor.execute(LOCK, [list(column) for column in zip(*asked, strict=True)])
        found: dict[int, Name | None] = {pk: (source, external_id) for pk, source, external_id in cursor.fetchall()}
    gone = Evidence.objects.filter(ticket__in=found, erased_at__isnull=False)
    return {found[pk] for pk in gone.values_list("ticket", flat=True)}


def _may_be_stored(text: str) -> bool:
    try:
        check_text("", text)
    except InvalidJob:
        return False
    return True

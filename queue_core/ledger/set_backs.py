"""Rows that a clock set back left out of order. Every set-back is on record, and explains only what falls into it."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from django.db import models

from queue_core.models import AuditEntry, Presence
from queue_core.set_back import ACT, AT

#: Rules that compare times of different instants. What was at one instant is equal whatever the clock said.
OF_TIMES = frozenset(
    {
        "appeal_made",
        "assignment_ended",
        "attempt_minute",
        "attempt_number",
        "attempt_times",
        "bulkentry_done",
        "bulkentry_turn",
        "decision_unseen",
        "deliverytry_times",
        "evidence_erased",
        "hold_place",
        "item_times",
        "itempass_made",
        "job_charged",
        "laneminute_counts",
        "message_deliveries",
        "outage_times",
        "preservationhold_kept",
        "recallentry_outcome",
        "stagerun_place",
    }
)
#: What was written since the last sign of life, and until the first one after it; and a minute's beginning.
MARGIN = timedelta(minutes=1)

type Span = tuple[datetime, datetime]


def spans() -> list[Span]:
    """The time that each set-back made pass twice. Two rows out of order because of it have both their times in it."""
    entries = AuditEntry.objects.filter(subject_type=Presence._meta.model_name, act=ACT).order_by("pk")
    return [
        (datetime.fromisoformat(after) - MARGIN, datetime.fromisoformat(before) + MARGIN)
        for before, after in entries.values_list(f"before__{AT}", f"after__{AT}")
    ]


def rows_within(model: type[models.Model], keys: Iterable[int], during: list[Span]) -> set[int]:
    """Those of these rows that have a time of their own within one of the spans."""
    stamps = [field.attname for field in model._meta.concrete_fields if isinstance(field, models.DateTimeField)]
    within = models.Q()
    for first, last in during:
        for name in stamps:
            within |= models.Q(**{f"{name}__range": (first, last)})
    if not within:
        return set()
    return set(model._default_manager.filter(within, pk__in=list(keys)).values_list("pk", flat=True))

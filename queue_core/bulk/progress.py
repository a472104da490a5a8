"""How far an act is, counted from its entries; what people made of its sample; what was moved before. Reads only."""

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from django.db.models import CharField, Count, Exists, F, Max, OuterRef, Q, Subquery
from django.db.models.functions import Cast, Coalesce

from queue_core.models import AuditEntry, BulkAct, BulkEntry, Decision, Job, Outage
from queue_core.states import BulkOutcome, Verdict

if TYPE_CHECKING:
    from django.db.models import QuerySet

MOVED = "job.deadline_moved"


@dataclass(frozen=True, slots=True)
class Progress:
    """Entries by what became of them. `last_at` is when the last one was, None before the first."""

    total: int
    pending: int
    by_outcome: dict[BulkOutcome, int]
    last_at: datetime | None

    @property
    def done(self) -> int:
        return self.by_outcome.get(BulkOutcome.DONE, 0)

    @property
    def handled(self) -> int:
        return self.total - self.pending


def progress(act: BulkAct) -> Progress:
    rows = act.entries.order_by().values("outcome").annotate(number=Count("pk"), last=Max("at"))
    counts = {row["outcome"]: row["number"] for row in rows}
    times = [row["last"] for row in rows if row["last"] is not None]
    by_outcome = {BulkOutcome(code): number for code, number in counts.items() if code is not None}
    return Progress(sum(counts.values()), counts.get(None, 0), by_outcome, max(times, default=None))


@dataclass(frozen=True, slots=True)
class Sample:
    """The items that people decide first. `otherwise` are those that somebody did not reject, or that went away."""

    size: int
    rejected: int
    otherwise: int

    @property
    def decided(self) -> int:
        return self.rejected + self.otherwise

    @property
    def open(self) -> int:
        return self.size - self.decided


def sample_of(act: BulkAct) -> Sample:
    """What people decided of the sample since the act was confirmed. The maker's own decisions are no second look."""
    entries = BulkEntry.objects.filter(act=act, is_sample=True)
    heads = Decision.objects.filter(
        job_id=OuterRef("job_id"), replaced_by__isnull=True, person__isnull=False, decided_at__gte=act.confirmed_at
    ).exclude(person_id=act.by_id)
    rejected = Q(Exists(heads.filter(verdict=Verdict.REJECTED)))
    is_open = Q(item__closed_at__isnull=True)
    found = entries.aggregate(
        size=Count("pk"),
        rejected=Count("pk", filter=rejected),
        otherwise=Count("pk", filter=~rejected & ~is_open),
    )
    return Sample(found["size"], found["rejected"], found["otherwise"])


def moved_since(jobs: "QuerySet[Job]") -> "QuerySet[Job]":
    """Those jobs whose deadline a person moved in the open outage of their connection, or else since they were queued.

    By the audit, so that one moved alone on its own page counts too.
    """
    outage = Outage.objects.filter(connection=OuterRef("lane__connection_id"), closed_at__isnull=True)
    moves = AuditEntry.objects.filter(
        subject_type="job", subject_id=Cast(OuterRef("pk"), CharField()), act=MOVED, at__gte=OuterRef("since")
    )
    since = Coalesce(Subquery(outage.values("opened_at")[:1]), F("queued_at"))
    return jobs.annotate(since=since).filter(Exists(moves))


def moved_before(act: BulkAct) -> int:
    """How many of an act's jobs were moved before, which it therefore leaves alone."""
    return moved_since(Job.objects.filter(pk__in=act.entries.values("job_id"))).count()

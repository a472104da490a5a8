"""What a restore leaves unknown: leases whose holders may have gone on in the time that the restore has lost."""

from dataclasses import dataclass

from django.db import transaction
from django.db.models import Exists, F, OuterRef
from django.db.models.functions import Least

from queue_core import tally
from queue_core.clock import Clock
from queue_core.contract.acts import raise_fences
from queue_core.contract.deaths import CLOSE_OF_JOBS, end_attempts
from queue_core.contract.locks import lock_lane, read_clock
from queue_core.errors import InvalidRequest
from queue_core.models import Attempt, Job
from queue_core.states import AttemptOutcome, JobState

BATCH = 500


@dataclass(frozen=True, slots=True)
class LeftUnknown:
    """How many jobs wait again, and how many stay LEASED, to be taken over one at a time."""

    waiting: int = 0
    for_takeover: int = 0

    @property
    def total(self) -> int:
        return self.waiting + self.for_takeover


@transaction.atomic
@tally.kept()
def leave_unknown(lane_id: int, *, clock: Clock, limit: int = BATCH) -> LeftUnknown:
    """Raise the fence of up to `limit` LEASED jobs of a lane, each with one `unknown` attempt. None left: total 0.

    An open attempt ends as unknown and is given back: it was the restore that cut it short. Where a sweep had closed
    it as expired, its ticket may be one that kills workers: such a job stays LEASED and is taken over alone, and the
    row of its raised fence is the unknown one. A job that stands under such a row already is passed over.
    """
    lock_lane(lane_id)
    under_unknown = Attempt.objects.filter(job=OuterRef("pk"), fence=OuterRef("fence"), outcome=AttemptOutcome.UNKNOWN)
    jobs = list(
        Job.objects.select_for_update(no_key=True)
        .filter(~Exists(under_unknown), lane_id=lane_id, state=JobState.LEASED)
        .order_by("pk")[:limit]
    )
    now = read_clock(clock, InvalidRequest)
    of_jobs = Attempt.objects.filter(job__in=[job.pk for job in jobs], ended_at__isnull=True)
    running = set(of_jobs.values_list("job_id", flat=True))
    of_jobs.update(is_charged=False)
    end_attempts(CLOSE_OF_JOBS, list(running), AttemptOutcome.UNKNOWN, now=now)
    cut_short = [job for job in jobs if job.pk in running]
    expired = [job for job in jobs if job.pk not in running]
    tally.leave_all(cut_short, now=now)
    raise_fences(cut_short, now=now)
    raise_fences(expired, now=now, outcome=AttemptOutcome.UNKNOWN)
    Job.objects.filter(pk__in=[job.pk for job in expired]).update(fence=F("fence") + 1)
    # A claim's own terms may have gone beyond the job's budget; what waits always has a try left.
    Job.objects.filter(pk__in=running).update(
        state=JobState.WAITING, fence=F("fence") + 1, attempts=Least("attempts", "max_attempts") - 1
    )
    for job in cut_short:
        job.state, job.attempts = JobState.WAITING, min(job.attempts, job.max_attempts) - 1
    tally.enter_all(cut_short, now=now)
    return LeftUnknown(len(cut_short), len(expired))

"""What is known of a run's answers, read from rows for the gate's second half. Nothing here writes."""

from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import Count, Q

from queue_core.gate_rightly import Answers, Checked
from queue_core.gate_usual import usual
from queue_core.models import BlindCheck, KnownAnswer, KnownReply, StageRun
from queue_core.states import Result

#: A run's shares are those of its last answers: at most so many, of at most so long ago.
MOST_ANSWERS = 2_000
LAST = timedelta(hours=1)
#: A reply is as old as this many intervals at most; after that nobody knows whether it would still be right.
INTERVALS = 3

#: The results of a run's last answers. Read backwards in time by `attempt_ended`, up to a limit.
RESULTS = """
WITH answers AS (
  SELECT job_id FROM queue_core_attempt
  WHERE lane_id = %(lane)s AND ended_at > %(since)s AND ended_at <= %(now)s AND run_id = %(run)s AND is_committed
  ORDER BY ended_at DESC
  LIMIT %(limit)s)
SELECT j.result, count(*) FROM answers a JOIN queue_core_job j ON j.id = a.job_id
WHERE j.result IS NOT NULL
GROUP BY j.result
"""


def answers_of(run: StageRun, *, now: datetime) -> Answers:
    """Reads no more than what the run has limits for."""
    judges_shares = run.max_share_shift is not None
    return Answers(
        results=_results(run, now) if judges_shares else {},
        usual=usual(run, now=now) if judges_shares else None,
        known=known_replies(run, now=now) if run.max_wrong_ratio is not None else Checked(),
        blind=_blind(run) if run.max_disagreement is not None else Checked(),
    )


def known_replies(run: StageRun, *, now: datetime) -> Checked:
    """The last reply of this run to each text in use. With no text in use nothing can be looked at."""
    texts = KnownAnswer.objects.filter(lane_id=run.lane_id, is_active=True)
    last = (
        KnownReply.objects.filter(run=run, known__in=texts, result__isnull=False)
        .filter(asked_at__gt=now - INTERVALS * run.known_every, asked_at__lte=now)
        .order_by("known_id", "-asked_at", "-pk")
        .distinct("known_id")
        .values_list("result", "expected")
    )
    replies = list(last)
    wrong = sum(result != expected for result, expected in replies)
    return Checked(looked_at=len(replies), bad=wrong, needed=max(texts.count(), 1))


def _blind(run: StageRun) -> Checked:
    counts = BlindCheck.objects.filter(run=run).aggregate(n=Count("pk"), bad=Count("pk", filter=Q(agrees=False)))
    return Checked(looked_at=counts["n"], bad=counts["bad"], needed=max(run.least_blind, 1))


def _results(run: StageRun, now: datetime) -> dict[Result, int]:
    since = max(run.started_at, now - LAST)
    params: dict[str, Any] = {"lane": run.lane_id, "run": run.pk, "since": since, "now": now, "limit": MOST_ANSWERS}
    with connection.cursor() as cursor:
        cursor.execute(RESULTS, params)
        return {Result(result): number for result, number in cursor.fetchall()}

"""Lanes that run, and jobs that wait in them, for the bench's own schema."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from django.db import Error, connection

from queue_core.clock import DATABASE_CLOCK
from queue_core.models import Lane, ModelConnection, Policy, ReasonCode, StageRun

LANES = 8
GROUND = "bench"
#: Jobs stored in one statement.
CHUNK = 50_000
#: Nobody judges the bench's lanes but the workers of its Celery part.
NEVER_STALE = datetime(9000, 1, 1, tzinfo=UTC)
#: As long as a usual comment.
EVIDENCE = json.dumps({"text": "I have read this three times and still do not see what the fuss is about. " * 3})
RULES = [{"category": "toxic", "reject_at": 0.9, "approve_below": 0.5, "reason_code": GROUND}]
TABLES = ("ticket", "evidence", "job", "attempt", "decision", "message")

#: Valid rows as `receive` writes them, thousands a second instead of hundreds. The tables are the bench's own.
FILL = """
WITH t AS (
  INSERT INTO queue_core_ticket
    (source, external_id, current_revision, lane_id, severity, category, source_kind, exposure, deadline_kind,
     first_seen_at)
  SELECT 'bench', n::text, 'v1', (%(lanes)s::bigint[])[1 + n %% cardinality(%(lanes)s::bigint[])], 1, '',
         'own_detection', 'hidden', 'service', %(now)s
  FROM generate_series(%(first)s::bigint, %(last)s::bigint) n RETURNING id, lane_id, external_id::bigint AS n),
e AS (
  INSERT INTO queue_core_evidence (ticket_id, revision, body, size, digest, received_at)
  SELECT id, 'v1', %(evidence)s, length(%(evidence)s), '', %(now)s FROM t RETURNING id, ticket_id)
INSERT INTO queue_core_job
  (lane_id, ticket_id, evidence_id, revision, severity, added_at, queued_at, deadline, urgency, max_attempts)
SELECT t.lane_id, t.id, e.id, 'v1', 1, %(now)s, %(now)s, %(now)s + interval '1 day' + n * interval '1 ms',
       %(now)s + n * interval '1 ms', 3
FROM t JOIN e ON e.ticket_id = t.id
"""


#: Ended attempts, as any queue that has run has them: a plan made while they are few would be a walk of their table for
#: as long as its session lasts. Of fences that no claim will reach.
HISTORY = """
INSERT INTO queue_core_attempt
  (job_id, lane_id, fence, key, worker, number, started_at, lease_until, ended_at, outcome)
SELECT id, lane_id, 1000000000 + n, gen_random_uuid(), 'bench', 1, %(now)s - interval '1 day',
       %(now)s - interval '1 day', %(now)s - interval '1 day', 'released'
FROM (SELECT id, lane_id FROM queue_core_job LIMIT %(jobs)s) jobs, generate_series(1, %(each)s) n
ON CONFLICT DO NOTHING
"""
HISTORY_JOBS, HISTORY_EACH = 1000, 100


def make_lanes(number: int = LANES, *, kind: str = "none", cap: int = 10_000, name: str = "bench") -> list[int]:
    """Lanes in their last stage, each with a policy. The first can be the one hot lane."""
    ReasonCode.objects.get_or_create(code=GROUND, defaults={"title": GROUND})
    now = DATABASE_CLOCK.now()
    model, _is_new = ModelConnection.objects.get_or_create(name=f"{name}-{kind}", defaults={"kind": kind})
    return [_make_lane(f"{name}-{place}", model, cap, now) for place in range(number)]


def fill(lane_ids: list[int], jobs: int, *, say: Callable[[int], object] = lambda _done: None) -> None:
    """Store waiting jobs, spread over the lanes, and let the planner know of them."""
    with connection.cursor() as cursor:
        cursor.execute("SET statement_timeout = 0")
        cursor.execute("SELECT count(*) FROM queue_core_ticket")
        row = cursor.fetchone()
    first = (row[0] if row else 0) + 1
    now = DATABASE_CLOCK.now()
    with _unguarded():
        for start in range(first, first + jobs, CHUNK):
            last = min(start + CHUNK, first + jobs) - 1
            values = {"lanes": lane_ids, "now": now, "first": start, "last": last, "evidence": EVIDENCE}
            with connection.cursor() as cursor:
                cursor.execute(FILL, values)
            say(last - first + 1)
        if first == 1:
            with connection.cursor() as cursor:
                cursor.execute(HISTORY, {"now": now, "jobs": HISTORY_JOBS, "each": HISTORY_EACH})
    analyze()


def analyze() -> None:
    with connection.cursor() as cursor:
        for table in TABLES:
            cursor.execute(f"ANALYZE queue_core_{table}")


@contextmanager
def _unguarded() -> Iterator[None]:
    """Past the guards: what is stored has a history that nobody made. For a superuser past foreign keys too."""
    if _act_as("replica"):
        try:
            yield
        finally:
            _act_as("origin")
        return
    # The tables are the bench's own, and an owner may.
    _let_guards("DISABLE")
    try:
        yield
    finally:
        _let_guards("ENABLE")


def _act_as(role: str) -> bool:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT set_config('session_replication_role', %s, false)", [role])
    except Error:
        connection.close()
        return False
    return True


def _let_guards(act: str) -> None:
    with connection.cursor() as cursor:
        for table in TABLES:
            cursor.execute(f"ALTER TABLE queue_core_{table} {act} TRIGGER USER")


def _make_lane(name: str, model: ModelConnection, cap: int, now: datetime) -> int:
    lane = Lane.objects.create(name=name, connection=model, lease=timedelta(seconds=60), drainers=8)
    policy = Policy.objects.create(lane=lane, version=1, rules=RULES, made_at=now)
    run = StageRun.objects.create(
        lane=lane,
        number=2,
        name=name,
        is_last=True,
        cap=cap,
        soak_completions=0,
        soak_time=timedelta(0),
        window=timedelta(minutes=5),
        least_sample=20,
        max_error_ratio=1.0,
        max_timeout_ratio=1.0,
        max_stale_ratio=1.0,
        connection=model,
        connection_snapshot={},
        lease=lane.lease,
        policy=policy,
        reason=GROUND,
        figures={},
        started_at=now,
    )
    lane.run, lane.cap, lane.policy, lane.judged_at = run, cap, policy, NEVER_STALE
    lane.save()
    return lane.pk

"""The batch statements on a filled table, planned once for all values: by an index, never by a walk of the table."""

import pytest
from django.db import connection

from queue_core import batch_sql
from queue_core.models import Attempt, Job, Lane
from tests.factories import T0, at, make_lane, past_the_guards

pytestmark = pytest.mark.django_db

ROWS = 50_000

#: Three in four DONE, the rest waiting, leased and expired, in three lanes; attempts for all that were ever claimed.
FILL = """
WITH t AS (
  INSERT INTO queue_core_ticket
    (source, external_id, current_revision, lane_id, severity, category, source_kind, exposure, deadline_kind,
     first_seen_at)
  SELECT 'plan', n::text, 'v1', (%(lanes)s::bigint[])[1 + n %% 3], n %% 3, '', 'own_detection', 'hidden', 'service',
         %(t0)s
  FROM generate_series(1, %(rows)s) n RETURNING id, lane_id, external_id::int AS n),
e AS (
  INSERT INTO queue_core_evidence (ticket_id, revision, body, size, digest, received_at)
  SELECT id, 'v1', '{}', 2, '', %(t0)s FROM t RETURNING id, ticket_id),
j AS (
  INSERT INTO queue_core_job
    (lane_id, ticket_id, evidence_id, revision, severity, added_at, queued_at, deadline, urgency, max_attempts,
     state, fence, attempts, lease_until, result, finished_at)
  SELECT t.lane_id, t.id, e.id, 'v1', 0, %(t0)s, %(t0)s, %(t0)s + (1000 + n) * interval '1 s',
         %(t0)s + n * interval '1 s', 3,
         CASE WHEN n %% 4 > 0 THEN 'DONE' WHEN n %% 40 = 0 THEN 'LEASED' ELSE 'WAITING' END,
         CASE WHEN n %% 4 > 0 OR n %% 40 = 0 THEN 1 ELSE 0 END,
         CASE WHEN n %% 4 > 0 OR n %% 40 = 0 THEN 1 ELSE 0 END,
         CASE WHEN n %% 4 > 0 OR n %% 40 = 0 THEN %(t0)s + (n %% 500) * interval '1 s' END,
         CASE WHEN n %% 4 > 0 THEN 'APPROVED' END, CASE WHEN n %% 4 > 0 THEN %(t0)s END
  FROM t JOIN e ON e.ticket_id = t.id RETURNING id, lane_id, state, fence, lease_until)
INSERT INTO queue_core_attempt
  (job_id, lane_id, fence, key, worker, number, started_at, lease_until, ended_at, outcome)
SELECT id, lane_id, 1, gen_random_uuid(), 'w', 1, %(t0)s, lease_until,
       CASE WHEN state = 'DONE' THEN %(t0)s END, CASE WHEN state = 'DONE' THEN 'verdict' END
FROM j WHERE fence = 1
"""

KINDS = {
    "lane": "bigint", "needs_until": "timestamptz", "limit": "bigint", "now": "timestamptz", "most_severe": "int",
    "outage_since": "timestamptz", "jobs": "bigint[]", "lease": "interval", "worker": "text", "run": "bigint",
    "policy": "bigint", "connection": "bigint", "results": "text[]", "attempts": "bigint[]", "outcome": "text[]",
    "latency": "interval[]", "scores": "text[]", "cause": "text[]", "detail": "text[]", "model": "text[]",
    "request_id": "text[]", "usage": "text[]", "ended_at": "timestamptz",
}  # fmt: skip

STATEMENTS = {
    "PICK_MOST_URGENT": "job_claimable",
    "PICK_FOR_THE_PROBE": "job_deadline",
    "PICK_EXPIRED": "job_leased",
    "PICK_PASSED_DEADLINES": "job_deadline",
    "LEASE": "queue_core_job_pkey",
    "END_DONE": "queue_core_job_pkey",
    "CLOSE_ATTEMPTS": "queue_core_attempt_pkey",
}


@pytest.fixture
def filled(db: None) -> Lane:
    lanes = [make_lane() for _ in range(3)]
    past_the_guards()
    with connection.cursor() as cursor:
        cursor.execute(FILL, {"lanes": [lane.pk for lane in lanes], "rows": ROWS, "t0": T0})
        for table in ("job", "attempt", "ticket", "evidence"):
            cursor.execute(f"ANALYZE queue_core_{table}")
    return lanes[0]


def generic_plan(statement: str) -> str:
    """The plan that a prepared statement keeps for every value, as a worker's connection has it."""
    names = [name for name in KINDS if f"%({name})s" in statement]
    numbered = statement
    for number, name in enumerate(names, 1):
        numbered = numbered.replace(f"%({name})s", f"${number}")
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL plan_cache_mode = force_generic_plan")
        cursor.execute(f"PREPARE planned ({', '.join(KINDS[name] for name in names)}) AS {numbered}")
        cursor.execute(f"EXPLAIN EXECUTE planned ({', '.join(['NULL'] * len(names))})")
        plan = "\n".join(row[0] for row in cursor.fetchall())
        cursor.execute("DEALLOCATE planned")
    return plan


def test_claims_completions_and_sweeps_are_planned_by_their_indexes(filled: Lane) -> None:
    """One test, since filling the table is most of its time."""
    _batch_statements_use_their_index()
    _claims_sort_nothing()
    _lookups_use_partial_indexes(filled)


def _batch_statements_use_their_index() -> None:
    for name, index in STATEMENTS.items():
        plan = generic_plan(getattr(batch_sql, name))

        assert index in plan, f"{name}\n{plan}"
        assert "Seq Scan on queue_core" not in plan, f"{name}\n{plan}"


def _claims_sort_nothing() -> None:
    for statement in (batch_sql.PICK_MOST_URGENT, batch_sql.PICK_FOR_THE_PROBE):
        assert "Sort" not in generic_plan(statement)


def _lookups_use_partial_indexes(lane: Lane) -> None:
    open_attempts = Attempt.objects.filter(ended_at__isnull=True)
    jobs = Job.objects.filter(lane=lane)
    looked_up = {
        "attempt_running": open_attempts.filter(lane_id__in=[lane.pk], lease_until__gt=at(1)),
        "attempt_running ": open_attempts.filter(connection=lane.connection, lease_until__gt=at(1)),
        "attempt_started": Attempt.objects.filter(lane=lane, started_at__gt=at(100)),
        "job_deadline": jobs.filter(state="WAITING", deadline__lte=at(1100)).order_by("deadline", "pk")[:500],
        "job_leased": jobs.filter(state="LEASED", lease_until__lte=at(50)).order_by("lease_until")[:500],
        "job_back_off": Job.objects.filter(state="WAITING", available_at__lte=at(1)).order_by("available_at")[:500],
    }
    for index, rows in looked_up.items():
        plan = rows.explain()

        assert index.strip() in plan, plan
        assert "Seq Scan" not in plan, plan


def test_every_statement_of_the_batch_is_looked_at() -> None:
    assert set(STATEMENTS) == {name for name in vars(batch_sql) if name.isupper()}

"""The hot path's statements on a filled table: found by an index, never by a walk of it, however they are planned."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from queue_core import batch, batch_sql, contract
from queue_core.contract import Ending, claim_sql, complete_sql, intake_sql
from queue_core.models import Attempt, Job, Lane
from tests.factories import T0, at, clock, make_lane, past_the_guards, waiting_job

pytestmark = pytest.mark.django_db

ROWS = 50_000

#: Three in four DONE, the rest waiting, resting, leased and expired, in three lanes; attempts for all ever claimed.
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
     state, fence, attempts, lease_until, result, finished_at, available_at)
  SELECT t.lane_id, t.id, e.id, 'v1', 0, %(t0)s, %(t0)s, %(t0)s + (1000 + n) * interval '1 s',
         %(t0)s + n * interval '1 s', 3,
         CASE WHEN n %% 4 > 0 THEN 'DONE' WHEN n %% 40 = 0 THEN 'LEASED' ELSE 'WAITING' END,
         CASE WHEN n %% 4 > 0 OR n %% 40 = 0 THEN 1 ELSE 0 END,
         CASE WHEN n %% 4 > 0 OR n %% 40 = 0 THEN 1 ELSE 0 END,
         CASE WHEN n %% 4 > 0 OR n %% 40 = 0 THEN %(t0)s + (n %% 500) * interval '1 s' END,
         CASE WHEN n %% 4 > 0 THEN 'APPROVED' END, CASE WHEN n %% 4 > 0 THEN %(t0)s END,
         CASE WHEN n %% 20 = 4 THEN %(t0)s + n * interval '1 s' END
  FROM t JOIN e ON e.ticket_id = t.id RETURNING id, lane_id, state, fence, lease_until)
INSERT INTO queue_core_attempt
  (job_id, lane_id, fence, key, worker, number, started_at, lease_until, ended_at, outcome)
SELECT id, lane_id, 1, gen_random_uuid(), 'w', 1, %(t0)s, lease_until,
       CASE WHEN state = 'DONE' THEN %(t0)s END, CASE WHEN state = 'DONE' THEN 'verdict' END
FROM j WHERE fence = 1
"""

#: The kinds of all values that a statement of the hot path takes.
KINDS = {
    "lane": "bigint", "needs_until": "timestamptz", "limit": "bigint", "now": "timestamptz", "most_severe": "int",
    "outage_since": "timestamptz", "jobs": "bigint[]", "job": "bigint", "lease": "interval", "worker": "text",
    "run": "bigint", "policy": "bigint", "connection": "bigint", "cap": "bigint", "since": "timestamptz",
    "oldest": "bigint", "max_attempts": "int", "figures": "text", "attempts": "bigint[]", "codes": "text[]",
    "rows": "text", "decided_at": "text", "automation": "text", "number": "bigint", "counts": "text", "totals": "text",
    "seed": "text", "sources": "text[]", "ids": "text[]",
}  # fmt: skip

#: What each statement has to find its rows by.
STATEMENTS = {
    batch_sql: {
        "PICK_MOST_URGENT": ["job_claimable"],
        "PICK_FOR_THE_PROBE": ["job_deadline"],
        "PICK_EXPIRED": ["job_leased"],
        "PICK_PASSED_DEADLINES": ["job_deadline"],
    },
    claim_sql: {
        "LOCK_LANE": [],
        "LOCK_LANE_AND_JOB": ["queue_core_job_pkey", "queue_core_ticket_pkey"],
        "CLAIM_MOST_URGENT": ["job_claimable", "queue_core_job_pkey", "job_deadline"],
        "CLAIM_MOST_URGENT_ONE": ["job_claimable", "queue_core_job_pkey", "job_deadline"],
        "CLAIM_PLAINLY": ["queue_core_job_pkey", "queue_core_ticket_pkey"],
        "LEASE": ["queue_core_job_pkey", "attempt_once_a_fence"],
    },
    complete_sql: {
        "LOCK": ["queue_core_job_pkey", "queue_core_ticket_pkey", "queue_core_attempt_pkey"],
        "GROUNDS": [],
        "WRITE": ["queue_core_job_pkey", "queue_core_ticket_pkey", "queue_core_attempt_pkey"],
        "COMPLETE_PLAINLY": ["queue_core_job_pkey", "queue_core_ticket_pkey", "queue_core_attempt_pkey"],
    },
    intake_sql: {
        "KNOWN": ["ticket_once_a_source"],
        "STORE": [],
    },
}
LARGE = ("job", "attempt", "ticket", "evidence")


@pytest.fixture
def filled(db: None) -> Lane:
    lanes = [make_lane() for _ in range(3)]
    past_the_guards()
    with connection.cursor() as cursor:
        cursor.execute(FILL, {"lanes": [lane.pk for lane in lanes], "rows": ROWS, "t0": T0})
        for table in ("job", "attempt", "ticket", "evidence"):
            cursor.execute(f"ANALYZE queue_core_{table}")
    return lanes[0]


def plan(statement: str, mode: str, values: dict[str, Any]) -> str:
    """The plan of a prepared statement: `force_generic_plan` for every value, `force_custom_plan` for these."""
    names = [name for name in KINDS if f"%({name})s" in statement]
    numbered = statement
    for number, name in enumerate(names, 1):
        numbered = numbered.replace(f"%({name})s", f"${number}")
    with connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL plan_cache_mode = {mode}")
        cursor.execute(f"PREPARE planned ({', '.join(KINDS[name] for name in names)}) AS {numbered}")
        placeholders = f"({', '.join(['%s'] * len(names))})"
        cursor.execute(f"EXPLAIN EXECUTE planned {placeholders}", [values[name] for name in names])
        found = "\n".join(row[0] for row in cursor.fetchall())
        cursor.execute("DEALLOCATE planned")
    return found


def usual_values(lane: Lane) -> dict[str, Any]:
    jobs = list(Job.objects.filter(lane=lane, state="WAITING").values_list("pk", flat=True)[:50])
    row = {"job": jobs[0], "result": "APPROVED", "attempt": 1, "ticket": 1, "seq": 1}
    return {
        "lane": lane.pk, "needs_until": at(1200), "limit": 50, "now": at(1100), "most_severe": 1,
        "outage_since": at(0), "jobs": jobs, "job": jobs[0], "lease": timedelta(seconds=30), "worker": "w",
        "run": lane.run_id, "policy": lane.policy_id, "connection": lane.connection_id, "cap": 10_000,
        "since": at(0), "oldest": 0, "max_attempts": 3, "figures": "[]", "attempts": list(range(1, 51)),
        "codes": ["insult"], "rows": json.dumps([row] * 50), "decided_at": "", "automation": "wholly",
        "number": 50, "counts": "{}", "totals": "{}", "seed": "s",
        "sources": ["plan"] * 50, "ids": [str(number) for number in range(50)],
    }  # fmt: skip


def test_claims_completions_and_sweeps_are_planned_by_their_indexes(filled: Lane) -> None:
    """One test, since filling the table is most of its time."""
    values = usual_values(filled)
    for mode in ("force_generic_plan", "force_custom_plan"):
        _statements_use_their_indexes(mode, values)
        _claims_sort_no_jobs(mode, values)
    _lookups_use_partial_indexes(filled)


def _statements_use_their_indexes(mode: str, values: dict[str, Any]) -> None:
    for module, statements in STATEMENTS.items():
        for name, indexes in statements.items():
            found = plan(getattr(module, name), mode, values)

            assert [index for index in indexes if index not in found] == [], f"{name}\n{found}"
            walked = [table for table in LARGE if f"Seq Scan on queue_core_{table}" in found]
            assert walked == [], f"{name}\n{found}"


def _claims_sort_no_jobs(mode: str, values: dict[str, Any]) -> None:
    """The order is the index's. What is sorted in a claim are the few rows that it gives."""
    for statement in (batch_sql.PICK_MOST_URGENT, batch_sql.PICK_FOR_THE_PROBE):
        assert "Sort" not in plan(statement, mode, values)
    for statement in (claim_sql.CLAIM_MOST_URGENT, claim_sql.CLAIM_MOST_URGENT_ONE):
        claim = plan(statement, mode, values)
        limit = claim.index("Limit  ")
        assert "Sort" not in claim[limit : claim.index("job_claimable", limit)], claim


def _lookups_use_partial_indexes(lane: Lane) -> None:
    open_attempts = Attempt.objects.filter(ended_at__isnull=True)
    jobs = Job.objects.filter(lane=lane)
    looked_up = {
        "attempt_open": open_attempts.filter(lane_id__in=[lane.pk], lease_until__gt=at(1)),
        "attempt_open ": open_attempts.filter(connection=lane.connection, lease_until__gt=at(1)),
        "attempt_started": Attempt.objects.filter(lane=lane, started_at__gt=at(100)),
        "job_deadline": jobs.filter(state="WAITING", deadline__lte=at(1100)).order_by("deadline", "pk")[:500],
        "job_leased": jobs.filter(state="LEASED", lease_until__lte=at(50)).order_by("lease_until")[:500],
        "job_back_off": Job.objects.filter(state="WAITING", available_at__lte=at(1)).order_by("available_at")[:500],
    }
    for index, rows in looked_up.items():
        plan = rows.explain()

        assert index.strip() in plan, plan
        assert "Seq Scan" not in plan, plan


def test_what_was_planned_on_empty_tables_finds_its_rows_by_key_when_they_are_full(db: None) -> None:
    """Plans are kept by the session, those of the guards too, until the next ANALYZE of a table."""
    lanes = [make_lane() for _ in range(3)]
    with connection.cursor() as cursor:
        for table in LARGE:
            cursor.execute(f"ANALYZE queue_core_{table}")
        cursor.execute("DISCARD PLANS")
    _work(lanes[0])
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute(FILL, {"lanes": [lane.pk for lane in lanes], "rows": ROWS // 10, "t0": T0})
        cursor.execute("SET LOCAL session_replication_role = DEFAULT")
    before = _rows_walked()
    _work(lanes[0])

    assert {table: rows for table, rows in _rows_walked().items() if rows - before[table] > 500} == {}


def _work(lane: Lane) -> None:
    """All that a worker writes: claims in a batch and alone, decisions and a MANUAL with its item."""
    alone = waiting_job(lane)
    for _ in range(3):
        waiting_job(lane)
    token = contract.claim(alone.pk, clock=clock(1), worker="w").token
    assert token
    contract.complete(token, Ending(result="MANUAL", cause="no_rule"), clock=clock(2))
    claims = batch.claim_next(lane.pk, 3, clock=clock(1), worker="w").claims
    assert len(claims) == 3
    batch.complete_many([(claim.token, Ending(result="APPROVED")) for claim in claims], clock=clock(2))


def _rows_walked() -> dict[str, int]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT relname, seq_tup_read FROM pg_stat_xact_user_tables WHERE relname LIKE 'queue_core_%'")
        return dict(cursor.fetchall())


def test_every_statement_of_the_hot_path_is_looked_at() -> None:
    for module, statements in STATEMENTS.items():
        texts = {name for name, value in vars(module).items() if isinstance(value, str) and name.isupper()}

        assert {name for name in texts if not name.startswith("_")} == set(statements), module.__name__


def test_no_statement_of_the_hot_path_is_longer_than_what_psycopg_reads_once() -> None:
    """Of a longer one it would look for the placeholders at each call."""
    for module, statements in STATEMENTS.items():
        for name in statements:
            assert len(" ".join(getattr(module, name).split())) <= 4096, name

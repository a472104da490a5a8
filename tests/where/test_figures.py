import re
from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import InternalError, OperationalError, connection, transaction

from queue_core import at_once, contract, figures, gate, where
from queue_core.clock import DATABASE_CLOCK
from queue_core.contract import Ending
from queue_core.figures import panels
from queue_core.figures.rebuilding import rebuild
from queue_core.states import AttemptOutcome, Exposure
from queue_core.where import Layer
from queue_core.where.counting import LATE_CAP
from reviewboard import board_text
from reviewboard.templatetags.board import count_capped
from tests.factories import (
    at,
    clock,
    dead_job,
    done_job,
    leased_job,
    make_lane,
    new_ticket,
    past_the_guards,
    waiting_job,
)

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _nothing_kept():
    panels.forget()
    yield
    panels.forget()


def board(seconds: float):
    return figures.board(list(where.lanes_to_read()), now=at(seconds))


def test_board_of_a_running_lane_tells_oldest_ready_and_none_held() -> None:
    lane = make_lane()
    waiting_job(lane, added=10)
    waiting_job(lane, added=5)

    [found] = board(100)

    assert found.layers.value.oldest_ready == timedelta(seconds=95)
    assert found.layers.value.oldest_held is None


def test_board_of_a_lane_on_hold_tells_oldest_held_and_none_ready() -> None:
    waiting_job(make_lane(cap=None), added=10)

    [found] = board(100)

    assert found.layers.value.oldest_held == timedelta(seconds=90)
    assert found.layers.value.oldest_ready is None


def test_board_tells_the_oldest_that_is_ready_though_all_that_wait_longest_are_too_late() -> None:
    lane = make_lane()
    for number in range(at_once.HEADS + 1):
        waiting_job(lane, added=number, deadline=100)
    waiting_job(lane, added=60)

    [found] = board(100)

    assert found.layers.value.count_of(Layer.TOO_LATE) == at_once.HEADS + 1
    assert found.layers.value.oldest_ready == timedelta(seconds=40)


def test_of_what_no_sweep_comes_to_a_board_reads_a_thousand_and_says_so() -> None:
    as_new()
    lane = make_lane()
    fill(lane, done=0, waiting=LATE_CAP + 200)
    rebuild(clock=clock(3600))

    [found] = board(90_000)
    [part] = [part for part in board_text.bar(found).parts if part.code == Layer.TOO_LATE]

    assert count_capped(part.count, part.cap) == "1,000+"
    assert found.layers.value.total == LATE_CAP + 200
    # None is known to be claimable: at most as long as the last that was looked at.
    assert found.layers.value.oldest_ready == timedelta(seconds=90_000, milliseconds=-LATE_CAP)


def test_board_counts_deadlines_of_the_next_hour_by_severity_the_worst_first() -> None:
    lane = make_lane(cap=None)
    for severity, deadline in [(0, 59), (1, 200), (2, 3659), (1, 300), (0, 3661), (0, 5000)]:
        waiting_job(lane, severity=severity, deadline=deadline)

    [found] = board(100)

    assert list(found.passing.value.items()) == [(2, 1), (1, 2)]


def test_board_tells_what_arrives_and_what_is_decided_in_the_last_five_minutes() -> None:
    lane = make_lane()
    done_job(lane, claimed=1, completed=2)
    done_job(lane, added=90, claimed=91, completed=92)
    done_job(lane, added=93, claimed=94, completed=95, result="MANUAL")
    waiting_job(lane, added=400)

    _timed_out, token = leased_job(lane, added=96, claimed=97)
    contract.release(token, outcome=AttemptOutcome.TIMEOUT, clock=clock(98))

    [found] = board(360)

    flow = found.flow.value
    assert [flow.arriving, flow.decided, flow.reviewed, flow.errors] == [0.6, 0.2, 0.4, 0.2]
    assert flow.last_completed_at == at(95)


def test_board_tells_work_for_people_in_hours() -> None:
    lane = make_lane(desk_items_per_hour=2)
    for _number in range(3):
        dead_job(lane)

    [found] = board(100)

    assert found.hours_of_work == 1.5


def test_board_tells_that_some_waiting_content_is_live() -> None:
    lane = make_lane(cap=None)
    waiting_job(lane)
    waiting_job(lane, exposure="live")
    waiting_job(lane, exposure="limited")

    assert board(1)[0].exposure == Exposure.LIVE


def test_board_of_many_lanes_takes_the_queries_of_one(django_assert_num_queries) -> None:
    for _number in range(5):
        waiting_job(make_lane())
    lanes = list(where.lanes_to_read())

    with figures.snapshot(), django_assert_num_queries(1):
        figures.board(lanes, now=at(1))


def test_of_a_board_that_takes_too_long_the_slow_part_alone_is_kept_from_before(monkeypatch) -> None:
    lane = make_lane(cap=None)
    waiting_job(lane, added=10)
    board(100)
    done_in_time = at_once.tell

    def too_slow(parts, params):
        if where.LAYERS[-1] in parts:
            raise OperationalError("canceling statement due to statement timeout")
        return done_in_time(parts, params)

    monkeypatch.setattr(at_once, "tell", too_slow)
    waiting_job(lane, added=100, deadline=500)
    [found] = board(200)

    assert (found.layers.value.total, found.layers.kept_from) == (1, at(100))
    assert (dict(found.passing.value), found.passing.kept_from) == ({1: 2}, None)


def test_a_panel_that_cannot_be_read_in_time_shows_its_last_value_and_when_that_was() -> None:
    def cancelled() -> int:
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL statement_timeout = '20ms'")
            cursor.execute("SELECT pg_sleep(5)")
        return 0

    first = panels.read_panel("one", lambda: 7, now=at(10))
    second = panels.read_panel("one", cancelled, now=at(20))
    never = panels.read_panel("two", cancelled, now=at(20))

    assert (first.value, first.kept_from) == (7, None)
    assert (second.value, second.kept_from) == (7, at(10))
    assert (never.value, never.is_kept) == (None, True)
    assert DATABASE_CLOCK.now() is not None


def test_in_a_snapshot_a_part_that_fails_spoils_no_other_and_changes_no_setting() -> None:
    def fails_in_a_block_of_its_own() -> int:
        with transaction.atomic(savepoint=False), connection.cursor() as cursor:
            cursor.execute("SET LOCAL statement_timeout = '20ms'")
            cursor.execute("SELECT pg_sleep(5)")
        return 0

    with figures.snapshot(), connection.cursor() as cursor:
        found = [panels.read_panel("one", fails_in_a_block_of_its_own, now=at(10)) for _ in range(2)]
        cursor.execute("SELECT current_setting('statement_timeout'), current_setting('enable_seqscan')")
        settings = cursor.fetchall()

    assert [one.value for one in found] == [None, None]
    assert settings == [("3s", "off")]
    assert DATABASE_CLOCK.now() is not None


@pytest.mark.django_db(transaction=True)
def test_a_snapshot_sees_one_moment_and_cannot_write() -> None:
    lane = make_lane()
    with figures.snapshot() as as_of, connection.cursor() as cursor:
        cursor.execute("SHOW transaction_isolation")
        assert cursor.fetchone() == ("repeatable read",)
        cursor.execute("SHOW statement_timeout")
        assert cursor.fetchone() == ("3s",)
        assert as_of <= DATABASE_CLOCK.now()
        with pytest.raises(InternalError, match="read-only"):
            waiting_job(lane)


def test_leases_are_the_longest_running_ones_and_the_rest_as_a_number() -> None:
    lane = make_lane()
    for number in range(12):
        leased_job(lane, claimed=1 + number)

    leases = figures.running_leases(lane, now=at(50))

    assert [one.since for one in leases.longest] == [at(1 + number) for number in range(10)]
    assert leases.rest == 2
    assert (leases.longest[0].fence, leases.longest[0].number, leases.longest[0].most) == (1, 1, 3)


def test_a_stale_answer_is_counted_in_its_run() -> None:
    lane = make_lane()
    _job, token = leased_job(lane, claimed=1)
    contract.complete(token, Ending(result="APPROVED"), clock=clock(500))

    assert figures.running_leases(lane, now=at(501)).effects.late == 1


def test_account_has_every_revision_in_exactly_one_place() -> None:
    lane, other = make_lane(), make_lane()
    waiting_job(lane, added=20)
    leased_job(lane, added=20, claimed=21)
    done_job(lane, added=20, claimed=21, completed=22)
    done_job(lane, added=20, claimed=21, completed=22, result="MANUAL")
    dead_job(lane)
    gone, old = waiting_job(lane, added=20), waiting_job(lane, added=20)
    contract.withdraw(source=gone.ticket.source, external_id=gone.ticket.external_id, clock=clock(30))
    newer = new_ticket(lane, external_id=old.ticket.external_id, revision="v2")
    contract.supersede(newer, replaces="v1", clock=clock(30))
    waiting_job(other)

    found = figures.account(lane)

    assert found == figures.Account(added=8, decided=1, open_items=2, gone=2, not_reviewed=3)
    assert found.balances
    assert figures.account().added == 9
    assert figures.account().balances


def test_the_account_of_a_lane_holds_when_a_later_revision_came_in_for_another_lane() -> None:
    first, second = make_lane(), make_lane()
    old = new_ticket(first)
    contract.receive(old, clock=clock(0))

    contract.supersede(replace(old, revision="v2", lane=second), replaces="v1", clock=clock(1))

    found = [figures.account(lane) for lane in (first, second)]
    assert [(one.added, one.gone, one.not_reviewed) for one in found] == [(1, 1, 0), (1, 0, 1)]
    assert all(one.balances for one in found)


@pytest.mark.parametrize("is_on_hold", [True, False])
def test_board_figures_of_a_filled_table_never_scan_it(is_on_hold: bool, monkeypatch) -> None:
    """PGQ-21: a refresh reads partial indexes and stops at its caps, whatever the tables hold."""
    as_new()
    lane = make_lane(cap=None) if is_on_hold else make_lane()
    fill(lane, done=15_000, waiting=12_000)
    rebuild(clock=clock(3600))
    lanes = list(where.lanes_to_read())
    plans: list[str] = []

    with figures.snapshot(), connection.execute_wrapper(explained(plans)):
        [found] = figures.board(lanes, now=at(1000))
        gate.read(lanes[0], now=at(1000))

    layer = Layer.HELD if is_on_hold else Layer.NO_WORKERS
    assert found.layers.value.counts[layer].count == 12_000
    for plan in plans:
        assert not re.search(r"Seq Scan on queue_core_(job|attempt|ticket|evidence)", plan), plan
        assert "Bitmap Heap Scan on queue_core_job" not in plan, plan
        assert "Hash Join" not in plan, plan


def test_board_planned_on_an_empty_database_still_goes_by_keys_when_it_is_full() -> None:
    """A session keeps its first plan. What a few rows make as cheap either way must not be left open by it."""
    as_new()
    make_lane()
    plans: list[str] = []

    with figures.snapshot(), connection.execute_wrapper(explained(plans)):
        board(100)

    plan = max(plans, key=len)
    found: dict[str, set[str]] = {}
    for index, table in re.findall(r"using (\w+) on queue_core_(\w+)", plan):
        found.setdefault(table, set()).add(index)
    assert {table: found[table] for table in GROWING} == GROWING, plan
    assert not re.search(
        r"hashed SubPlan|Hash Join|Merge Join|Bitmap Heap Scan on queue_core_(job|ticket|item)", plan
    ), plan


#: What grows without end, and the indexes that a refresh may go by.
GROWING = {
    "job": {"job_oldest", "job_deadline", "job_leased", "job_resting"},
    "ticket": {"queue_core_ticket_pkey"},
    "item": {"item_job", "item_longest"},
    "attempt": {"attempt_open", "attempt_started", "attempt_ended"},
    "laneminute": {"lane_minute_once"},
    "lanesample": {"lane_sample_once"},
}


def test_claimed_jobs_do_not_gather_at_the_heads_of_the_indexes_until_a_fifth_of_the_backlog_is_claimed() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT reloptions FROM pg_class WHERE oid = 'queue_core_job'::regclass")
        [[options]] = cursor.fetchall()

    assert {"autovacuum_vacuum_scale_factor=0.01", "vacuum_index_cleanup=on"} <= set(options)


def as_new() -> None:
    """Tables without what earlier tests left in them: dead rows and old statistics make other plans."""
    with connection.cursor() as cursor:
        cursor.execute(f"TRUNCATE {', '.join(f'queue_core_{table}' for table in GROWING)} CASCADE")


def plan_of(cursor, sql: str, params) -> str:
    """As a statement with names is planned where the session plans it once for all values; any other, for these."""
    if not isinstance(params, dict):
        rows = cursor.execute(f"EXPLAIN {sql}", params).fetchall()
    else:
        names = list(dict.fromkeys(re.findall(r"%\((\w+)\)s", sql)))
        for number, name in enumerate(names, 1):
            sql = sql.replace(f"%({name})s", f"${number}")
        cursor.execute("SET LOCAL plan_cache_mode = force_generic_plan")
        cursor.execute(f"PREPARE planned AS {sql}")
        values = ", ".join(["%s"] * len(names))
        rows = cursor.execute(f"EXPLAIN EXECUTE planned ({values})", [params[name] for name in names]).fetchall()
        cursor.execute("DEALLOCATE planned")
    return "\n".join(row[0] for row in rows)


def explained(plans: list[str]):
    def wrap(execute, sql, params, many, context):
        if sql.lstrip("( \n").upper().startswith(("SELECT", "WITH")):
            with context["connection"].connection.cursor() as cursor:
                plans.append(plan_of(cursor, sql, params))
        return execute(sql, params, many, context)

    return wrap


def fill(lane, *, done: int, waiting: int) -> None:
    """Rows by the thousand, in the shapes that the contract leaves behind."""
    statements = [
        """INSERT INTO queue_core_ticket (source, external_id, current_revision, lane_id, severity, category,
             source_kind, exposure, deadline_kind, first_seen_at)
           SELECT 'fill', n::text, 'v1', %(lane)s, n %% 3, '', 'own_detection', 'hidden', 'service', %(t)s
           FROM generate_series(1, %(all)s) n""",
        """INSERT INTO queue_core_evidence (ticket_id, revision, body, size, digest, received_at)
           SELECT id, 'v1', '{}', 2, '', %(t)s FROM queue_core_ticket WHERE source = 'fill'""",
        """INSERT INTO queue_core_job (lane_id, ticket_id, evidence_id, revision, state, severity, added_at, queued_at,
             deadline, urgency, max_attempts, fence, result, finished_at)
           SELECT %(lane)s, t.id, e.id, 'v1', CASE WHEN t.external_id::int <= %(done)s THEN 'DONE' ELSE 'WAITING' END,
             t.severity, %(t)s, %(t)s + t.external_id::int * interval '1 ms', %(t)s + interval '1 day', %(t)s, 3, 1,
             CASE WHEN t.external_id::int <= %(done)s THEN 'APPROVED' END,
             CASE WHEN t.external_id::int <= %(done)s THEN %(t)s END
           FROM queue_core_ticket t JOIN queue_core_evidence e ON e.ticket_id = t.id WHERE t.source = 'fill'""",
        """INSERT INTO queue_core_attempt (job_id, lane_id, fence, key, worker, number, started_at, lease_until,
             ended_at, outcome, is_committed)
           SELECT id, lane_id, 1, gen_random_uuid(), 'w', 1, %(t)s, %(t)s, %(t)s, 'verdict', true
           FROM queue_core_job WHERE state = 'DONE'""",
        "ANALYZE",
    ]
    # A DONE job cannot be inserted past the contract, and forty thousand of them through it take too long.
    past_the_guards()
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement, {"lane": lane.pk, "t": at(0), "all": done + waiting, "done": done})

"""The audit beside a system at work: it reports nothing that is merely on its way, and keeps nobody waiting."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from queue_core.ledger import Finding, audit
from tests.factories import make_lane, waiting_job
from tests.ledger.stories import Story

pytestmark = pytest.mark.django_db(transaction=True)


def test_nothing_is_reported_while_verbs_run_beside_it() -> None:
    with ThreadPoolExecutor(1) as pool:
        played = pool.submit(play_in_a_session_of_its_own)
        reports = [audit(chunk=5)]
        while not played.done():
            reports.append(audit(chunk=5))
        played.result()
        reports.append(audit(chunk=5))

    assert [[f"{one.rule.code} {one.key}" for one in report.findings] for report in reports] == [[]] * len(reports)
    assert len(reports) > 2
    assert reports[-1].rows > reports[0].rows


def play_in_a_session_of_its_own() -> None:
    try:
        Story(7).play(150)
    finally:
        connection.close()


def test_the_audit_cannot_write(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each chunk is read in a transaction that PostgreSQL keeps from writing."""
    waiting_job(make_lane())
    modes: set[str] = set()

    def judged(*_rules_and_keys: object) -> list[Finding]:
        modes.add(mode())
        return []

    monkeypatch.setattr("queue_core.ledger.auditor.judged", judged)

    audit()

    assert modes == {"repeatable read, on"}


def mode() -> str:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_setting('transaction_isolation') || ', ' || current_setting('transaction_read_only')"
        )
        [[found]] = cursor.fetchall()
    return found

"""The demo's past was played through the verbs, and its ledger is a true one."""

import pytest

from queue_core.ledger import audit
from reviewboard.demo import seed

pytest.importorskip("profanity_check", reason="the local model is not installed (group reviewer)")


@pytest.mark.django_db(transaction=True)
def test_the_ledger_of_the_demo_is_clean() -> None:
    """Committed, so that the audit reads it in transactions of its own."""
    said: list[str] = []
    seed.prepare(said.append)

    report = audit(chunk=100)

    assert [f"{one.rule.code} {one.key}" for one in report.findings] == []
    assert report.sums.added > 200

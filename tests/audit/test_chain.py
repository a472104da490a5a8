"""The chain of the audit's entries: nothing in it can be changed, removed or slipped in without being found."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from queue_core import audit
from queue_core.audit import Head
from queue_core.audit.verifying import Break
from queue_core.models import AuditEntry, Lane
from tests.factories import at, make_lane, past_the_guards
from tests.locking import holding, started, together, wait_until_blocked

pytestmark = pytest.mark.django_db


@pytest.fixture
def lane() -> Lane:
    return make_lane()


def acts(lane: Lane, number: int) -> list[AuditEntry]:
    after = {"ratio": 0.1, "name": "Zoë 中", "list": [1, None]}
    return [
        audit.record(
            "lane.held", now=at(n), actor=None, subject=lane, lane=lane, reason="a\nb", after=after, address="::1"
        )
        for n in range(number)
    ]


def test_sealed_entries_are_numbered_without_gap_and_verify(lane: Lane) -> None:
    acts(lane, 5)

    assert [audit.seal_committed(most=3), audit.seal_committed(most=3), audit.seal_committed(most=3)] == [3, 2, 0]

    verdict = audit.verify(chunk=2)
    assert (verdict.intact, verdict.how, verdict.unsealed) == (audit.head(), None, 0)
    assert list(AuditEntry.objects.order_by("pk").values_list("number", flat=True)) == [1, 2, 3, 4, 5]


def test_nothing_is_sealed_where_nothing_was_done() -> None:
    assert audit.seal_committed() == 0
    assert audit.verify().intact == Head()


@pytest.mark.parametrize(
    ("field", "value"),
    [("reason", "another"), ("actor_name", "olga"), ("at", at(99)), ("after", {"ratio": 0.2}), ("address", "::2"),
     ("act", "lane.raised"), ("subject_id", "0"), ("lane_id", None), ("seal", "0" * 64)],
)  # fmt: skip
def test_a_change_behind_the_guards_is_found_at_its_entry(lane: Lane, field: str, value: object) -> None:
    """ADM: whoever can write to the table cannot rewrite what happened unseen."""
    acts(lane, 5)
    audit.seal_committed()

    past_the_guards()
    AuditEntry.objects.filter(number=3).update(**{field: value})

    verdict = audit.verify()
    assert (verdict.intact.number, verdict.broken_at, verdict.how) == (2, 3, Break.CHANGED)


def test_a_removed_entry_is_found(lane: Lane) -> None:
    acts(lane, 5)
    audit.seal_committed()

    past_the_guards()
    AuditEntry.objects.filter(number=3).delete()

    verdict = audit.verify()
    assert (verdict.broken_at, verdict.how) == (3, Break.MISSING)


def test_a_chain_that_was_cut_or_written_anew_is_not_the_expected_one(lane: Lane) -> None:
    acts(lane, 3)
    audit.seal_committed()
    noted = audit.head()
    assert audit.verify(expected=noted).how is None

    past_the_guards()
    AuditEntry.objects.filter(number=3).delete()
    assert audit.verify().how is None
    assert audit.verify(expected=noted).how is Break.CUT

    acts(lane, 1)
    audit.seal_committed()
    assert audit.verify().how is None
    assert audit.verify(expected=noted).how is Break.OTHER


def test_the_command_says_up_to_where_and_ends_with_1_where_it_breaks(lane: Lane) -> None:
    acts(lane, 3)
    audit.seal_committed()
    acts(lane, 1)
    out = StringIO()
    head = audit.head()

    call_command("audit_verify", "--expect", f"{head.number}:{head.seal}", stdout=out, stderr=StringIO())

    assert out.getvalue().splitlines() == [
        "Unbroken up to entry 3 of 2026-01-01 00:00:02 UTC.",
        f"Head: 3:{head.seal}",
        "1 entry is not sealed yet, since 2026-01-01 00:00:00 UTC.",
    ]
    past_the_guards()
    AuditEntry.objects.filter(number=2).update(reason="another")
    with pytest.raises(CommandError, match="Entry 2 or its seal was changed") as refusal:
        call_command("audit_verify", stdout=out, stderr=StringIO())
    assert refusal.value.returncode == 1


@pytest.mark.parametrize("head", ["3", "0:" + "0" * 64, "1:xyz", "1:" + "0" * 63])
def test_a_head_that_is_none_is_refused(head: str) -> None:
    with pytest.raises(CommandError, match="64 hexadecimal digits"):
        call_command("audit_verify", "--expect", head)


@pytest.mark.django_db(transaction=True)
def test_an_entry_that_commits_late_is_chained_late_and_never_passed_over(lane: Lane) -> None:
    with holding(lambda: acts(lane, 1)) as late:
        acts(lane, 2)
        assert audit.seal_committed() == 2
    assert audit.seal_committed() == 1

    assert AuditEntry.objects.get(number=3).pk == late[0].pk < AuditEntry.objects.get(number=1).pk
    assert audit.verify().how is None


@pytest.mark.django_db(transaction=True)
def test_two_sealers_at_once_make_one_chain(lane: Lane) -> None:
    acts(lane, 40)

    sealed = together([lambda: audit.seal_committed(most=10)] * 6)

    assert sorted(sealed) == [0, 0, 10, 10, 10, 10]
    verdict = audit.verify()
    assert (verdict.intact.number, verdict.how) == (40, None)


@pytest.mark.django_db(transaction=True)
def test_a_sealer_that_had_to_wait_goes_on_where_the_other_one_ended(lane: Lane) -> None:
    acts(lane, 2)
    with holding(lambda: audit.seal_committed(most=1)):
        second = started("second sealer", audit.seal_committed)
        wait_until_blocked(second)

    assert second.outcome() == 1
    assert audit.verify().intact.number == 2

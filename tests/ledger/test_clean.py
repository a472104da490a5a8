"""A ledger that only the verbs wrote has nothing wrong in it."""

from collections import Counter

import pytest

from queue_core import figures
from queue_core.ledger import Step, audit
from queue_core.models import Decision, Item, Job
from tests.ledger.stories import Story

pytestmark = pytest.mark.django_db


def wrong(**options: int) -> list[str]:
    return [f"{one.rule.code} {one.rule.model.__name__} {one.key}" for one in audit(**options).findings]


def test_an_empty_ledger_is_clean() -> None:
    assert audit().is_clean


@pytest.mark.parametrize("seed", [1, 2])
def test_whatever_the_verbs_made_of_it_is_clean(seed: int) -> None:
    Story(seed).play(300)

    assert wrong() == []


def test_stories_reach_every_state_and_every_end_of_an_item() -> None:
    """What the stories never make would be proved by none of them."""
    Story(0).play(400)

    assert wrong() == []
    assert set(Job.objects.values_list("state", flat=True)) == {"WAITING", "LEASED", "DONE", "DEAD"}
    ends = set(Item.objects.exclude(closed_as=None).values_list("closed_as", flat=True))
    assert ends == {"decided", "requeued", "superseded", "withdrawn"}
    assert Decision.objects.filter(attempt__isnull=False).exists()


@pytest.mark.parametrize("chunk", [2, 7, 1000])
def test_the_sums_are_those_of_the_figures_however_the_ledger_is_cut(chunk: int) -> None:
    Story(1).play(80)

    report = audit(chunk=chunk)

    assert report.is_clean
    account = figures.account()
    assert (report.sums.added, report.sums.decided, report.sums.open_items, report.sums.gone) == (
        account.added, account.decided, account.open_items, account.gone,
    )  # fmt: skip
    assert (report.sums.not_reviewed, report.sums.lost) == (account.not_reviewed, 0)


def test_every_row_is_read_once_and_progress_ends_at_the_whole() -> None:
    Story(2).play(100)
    steps: list[Step] = []

    audit(chunk=10, on_step=steps.append)

    jobs = [step for step in steps if step.model is Job]
    assert jobs[-1].rows == Job.objects.count()
    assert jobs[-1].is_last
    assert len(jobs) == -(-Job.objects.count() // 10)
    assert max(Counter(step.model for step in steps if step.is_last).values()) == 1

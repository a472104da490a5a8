"""A ledger that all of people's acts and the machine's were written to has nothing wrong in it."""

from collections import Counter
from collections.abc import Callable

import pytest
from django.db import transaction

from queue_core import figures
from queue_core.ledger import audit
from queue_core.models import Decision
from tests.ledger.wide_stories import WideStory, seeded

__all__ = ["seeded"]
pytestmark = pytest.mark.django_db

#: What the story is about; the rest is in the narrow ones.
WIDE = {
    "resolve", "skip", "escalate", "appeal", "correct", "take_back", "recall", "begin_bulk", "erase", "preserve",
    "lift", "restrict", "report",
}  # fmt: skip


def wrong() -> list[str]:
    return [f"{one.rule.code} {one.key}" for one in audit().findings]


def test_whatever_people_and_the_machine_made_of_it_is_clean(seeded: Callable[[int], WideStory]) -> None:
    story = seeded(9)
    story.play(180)

    assert wrong() == []
    assert Decision.objects.filter(replaces__isnull=False).exists()


# About half a minute each.
@pytest.mark.timeout(900)
@pytest.mark.long
def test_long_stories_of_all_acts_are_clean(seeded: Callable[[int], WideStory]) -> None:
    played: Counter[str] = Counter()
    for seed in range(10, 18):
        # Each in a database without the others' people and endpoint.
        with transaction.atomic():
            story = seeded(seed)
            story.play(700)
            figures.fold()
            assert (seed, wrong()) == (seed, [])
            transaction.set_rollback(True)
        played += story.played

    assert {act for act in WIDE if not played[act]} == set()

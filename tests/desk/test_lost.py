"""What a person is told whose assignment was over when their decision arrived."""

import re
from datetime import timedelta

import pytest
from django.urls import reverse

from queue_core import people
from queue_core.clock import DATABASE_CLOCK, FixedClock
from queue_core.models import Assignment, Item
from tests.desk.backlog import now, token_of
from tests.desk.test_buttons import appealed, cast, corrected, disputed, second_look  # noqa: F401 - a fixture
from tests.factories import without_guards

pytestmark = pytest.mark.django_db


def text(response):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode()))


@pytest.mark.parametrize("kind", [second_look, disputed, corrected, appealed], ids=lambda kind: kind.__name__)
def test_the_decision_that_is_looked_at_is_not_taken_for_one_that_came_first(client, cast, kind):  # noqa: F811
    item, past = kind(cast), now() - timedelta(minutes=30)
    with without_guards():
        Item.objects.filter(pk=item.pk).update(opened_at=past - timedelta(minutes=1))
    people.take(item.pk, person=cast.mine, clock=FixedClock(past))
    token = token_of(item)
    assert Assignment.objects.get(item=item, fence=token.fence).until < now()
    client.force_login(cast.mine)
    sent = {"fence": token.fence, "key": str(token.key), "verdict": "APPROVED", "note": "typed with care"}

    answer = client.post(reverse("item_decide", args=[item.pk]), sent)

    assert answer.status_code == 409
    assert "Your assignment was over. Nothing was changed." in text(answer)
    assert "decided before your decision arrived" not in text(answer)
    assert "typed with care" in text(answer)
    if kind is second_look:
        assert "Decided by" not in text(answer), "who looks again does not see how the first one decided"
    assert people.take(item.pk, person=cast.mine, clock=DATABASE_CLOCK).token is not None

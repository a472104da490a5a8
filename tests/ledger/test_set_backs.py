"""A clock that was set back leaves rows out of order. Where that is on record it is no finding, and nothing else is."""

import pytest
from django.db import connection

from queue_core import contract, people, set_back
from queue_core.contract import Ending
from queue_core.ledger import audit
from queue_core.models import Attempt, Item, Presence
from tests.factories import at, claim, clock, leased_job, make_lane, past_the_guards, waiting_job
from tests.people.cast import leo

pytestmark = pytest.mark.django_db


def found() -> list[str]:
    return [f"{one.rule.code} {one.key}" for one in audit().findings]


def test_what_a_set_back_left_out_of_order_is_no_finding_and_what_is_damaged_is_one() -> None:
    lane, who = make_lane(), leo()
    earlier, token = leased_job(lane, deadline=5000, claimed=500)
    assert contract.complete(token, Ending("MANUAL"), clock=clock(501)) == "committed"
    assert people.take(Item.objects.get().pk, person=who, clock=clock(990)).token is not None
    _running, token = leased_job(lane, deadline=5000, claimed=998)
    queued = waiting_job(lane, deadline=5000, added=999)
    # Ten minutes back.
    assert contract.complete(token, Ending("APPROVED"), clock=clock(400)) == "committed"
    assert contract.complete(claim(queued, when=401), Ending("APPROVED"), clock=clock(402)) == "committed"
    assert contract.withdraw(source="test", external_id=earlier.ticket.external_id, clock=clock(403)) == "done"
    assert {one.split()[0] for one in found()} == {"attempt_times", "assignment_ended", "item_times"}

    Presence.objects.create(kind="scheduler", name="s", started_at=at(0), seen_at=at(1000))
    set_back.notice("s", clock=clock(404))
    assert found() == []

    past_the_guards()
    with connection.cursor() as cursor:
        cursor.execute("UPDATE queue_core_attempt SET ended_at = %s, started_at = %s", [at(5000), at(5001)])
        cursor.execute("UPDATE queue_core_attempt SET lease_until = %s", [at(5002)])
    assert {f"attempt_times {pk}" for pk in Attempt.objects.values_list("pk", flat=True)} < set(found())

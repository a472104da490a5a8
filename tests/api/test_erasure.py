"""Content erased over the API: all of it, on record as the key's, and not while it is kept."""

from datetime import timedelta

import pytest

from queue_core import people, roles
from queue_core.clock import DATABASE_CLOCK
from queue_core.models import AuditEntry, Evidence
from tests.api.conftest import Caller, refused, ticket

pytestmark = pytest.mark.django_db

BODY = {"ticket": "t1", "source": "shop", "ground": "The author asked for it."}


def test_content_is_erased_once_and_the_ground_is_on_record(call, lane) -> None:
    call.post("/tickets", ticket(evidence={"text": "a secret"}))

    first, second = call.post("/tickets/erase", BODY), call.post("/tickets/erase", BODY)

    assert (first.json()["outcome"], first.json()["revisions"]) == ("erased", 1)
    assert second.json()["outcome"] == "already"
    assert Evidence.objects.get().body == ""
    entry = AuditEntry.objects.get(act="ticket.erased")
    assert (entry.actor_name, entry.reason) == ("key shop", BODY["ground"])


def test_what_is_kept_for_a_lawful_reason_stays_and_nothing_of_the_authority_is_told(call, lane, ada) -> None:
    from queue_core.models import Ticket

    call.post("/tickets", ticket())
    roles.assign(ada, roles.SPECIALIST)
    until = DATABASE_CLOCK.now() + timedelta(days=30)
    terms = {"authority": "police-of-oz", "reference": "z-17", "reason": "asked", "until": until}
    people.preserve(Ticket.objects.get().pk, person=ada, clock=DATABASE_CLOCK, **terms)

    problem = refused(call.post("/tickets/erase", BODY), 409, "preserved", until=until.isoformat())

    assert "oz" not in str(problem)
    assert Evidence.objects.get().body


def test_a_key_erases_nothing_beyond_its_lanes(call, make_key, lane) -> None:
    from tests.factories import make_lane

    call.post("/tickets", ticket())
    narrow = Caller(make_key("narrow", scopes=["erase"], lanes=[make_lane().pk]).secret)

    refused(narrow.post("/tickets/erase", BODY), 404, "not_found")
    refused(call.post("/tickets/erase", BODY | {"ground": " "}), 400, "invalid_request", field="ground")

"""Appeals over the API: once a decision, only against what the source may know of, on record as the key's."""

import pytest

from queue_core import relay
from queue_core.clock import DATABASE_CLOCK
from queue_core.models import AuditEntry, Item
from tests.api.conftest import refused
from tests.factories import done_job, make_lane

pytestmark = pytest.mark.django_db


def body(job, **fields):
    return {"ticket": job.ticket.external_id, "source": "test", "statement": "It was a quotation."} | fields


def test_an_appeal_opens_an_item_once_and_is_the_keys_act(call, make_key) -> None:
    job = done_job(make_lane(), result="REJECTED")
    relay.number_messages(clock=DATABASE_CLOCK)

    first, second = call.post("/tickets/appeal", body(job)), call.post("/tickets/appeal", body(job))

    assert (first.status_code, first.json()["outcome"]) == (201, "opened")
    assert (second.status_code, second.json()["outcome"]) == (200, "known")
    assert Item.objects.get(closed_at__isnull=True).kind == "appeal"
    assert AuditEntry.objects.filter(key__isnull=False, actor_name="key shop").exists()


def test_what_is_not_out_is_not_to_be_appealed_against(call) -> None:
    job = done_job(make_lane(), result="REJECTED")

    refused(call.post("/tickets/appeal", body(job)), 409, "not_possible", reason="nothing_decided")
    relay.number_messages(clock=DATABASE_CLOCK)
    refused(call.post("/tickets/appeal", body(job, revision="v0")), 409, "not_possible", reason="not_current")
    refused(call.post("/tickets/appeal", body(job, statement="")), 400, "invalid_request", field="statement")
    assert not Item.objects.exists()

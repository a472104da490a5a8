"""What is written once about messages and deliveries, whoever asks."""

from typing import Any

import pytest
from django.db import IntegrityError, transaction

from queue_core import relay
from queue_core.models import Delivery, DeliveryTry, Message
from queue_core.relay import rows
from queue_core.states import TryOutcome
from tests.factories import T0, done_job, make_lane, without_guards

pytestmark = pytest.mark.django_db


def refuses(model: Any, why: str, **values: Any) -> None:
    before = list(model.objects.order_by("pk").values())
    with pytest.raises(IntegrityError, match=why), transaction.atomic():
        model.objects.update(**values)
    assert list(model.objects.order_by("pk").values()) == before


@pytest.fixture(autouse=True)
def _delivery(make_endpoint, clock) -> None:
    endpoint = make_endpoint("https://consumer.example/")
    done_job(make_lane())
    relay.step(clock=clock)
    [taken] = rows.take(endpoint, 1, clock=clock)
    rows.end(endpoint.pk, [(taken, relay.Answer(TryOutcome.DELIVERED, 200))], clock=clock)


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"number": 7}, "numbered once"),
        ({"number": None}, "numbered once"),
        ({"seq": 9}, "never changes"),
        ({"kind": "item.opened"}, "never changes"),
        ({"state": "kept_back"}, "no way leads from ready to kept_back"),
    ],
)
def test_a_message_is_numbered_once_and_goes_on_telling_the_same(values, why) -> None:
    refuses(Message, why, **values)


def test_a_withdrawn_message_stays_withdrawn() -> None:
    Message.objects.update(state="withdrawn")

    refuses(Message, "no way leads from withdrawn", state="ready")


@pytest.mark.parametrize(
    ("values", "why"), [({"kind": "item.opened"}, "never changes"), ({"tries": 0}, "tries never fall")]
)
def test_a_delivery_stays_of_its_message_and_counts_every_try(values, why) -> None:
    refuses(Delivery, why, **values)


def test_a_withdrawn_delivery_is_never_sent_again() -> None:
    with without_guards():
        Delivery.objects.update(state="withdrawn")

    refuses(Delivery, "was withdrawn", state="pending", ended_at=None)


@pytest.mark.parametrize("values", [{"outcome": "failed"}, {"started_at": T0}, {"ended_at": None, "outcome": None}])
def test_a_try_is_closed_once(values) -> None:
    refuses(DeliveryTry, "closed once", **values)

"""At least once, in order by ticket, signed; and no consumer's trouble is another's."""

import importlib.util
import json
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from standardwebhooks import Webhook

from queue_core import outbox, relay
from queue_core.errors import InvalidRequest, NotPermitted
from queue_core.models import AuditEntry, Delivery, Endpoint, EndpointSecret, Message
from queue_core.relay import envelopes, rows
from queue_core.relay.circuit import OPENS_AFTER
from queue_core.states import DeliveryState, EndpointState, MessageKind, TryOutcome
from tests.factories import T0, done_job, make_lane
from tests.ledger.damage import found_by
from tests.locking import holding, started, wait_until_blocked
from tests.relay.conftest import deliver, secret_of, with_secret
from tests.relay.receiver import answer, hang

pytestmark = pytest.mark.django_db
EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "consumer.py"


def example():
    spec = importlib.util.spec_from_file_location("consumer", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def outcomes(delivery: Delivery) -> list[str | None]:
    return list(delivery.tried.order_by("number").values_list("outcome", flat=True))


def on(lane, number: int = 1) -> list[Message]:
    """Decisions of so many tickets."""
    jobs = [done_job(lane) for _count in range(number)]
    return [Message.objects.get(ticket=job.ticket, kind="decision") for job in jobs]


def test_a_decision_is_delivered_signed_with_what_a_consumer_needs(make_endpoint, receiver, clock) -> None:
    endpoint = make_endpoint(receiver.url)
    [message] = on(make_lane())

    sent = deliver(endpoint, clock)

    assert (sent.delivered, sent.failed) == (1, 0)
    [request] = receiver.requests
    told = Webhook(secret_of(endpoint)).verify(request.body, request.headers)
    assert told["id"] == request.id == str(message.key)
    assert (told["type"], told["seq"], told["number"]) == ("decision", 1, 1)
    assert told["data"]["verdict"] == "APPROVED"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["host"] == f"127.0.0.1:{receiver.port}"
    delivery = Delivery.objects.get()
    assert (delivery.state, delivery.tries, outcomes(delivery)) == (DeliveryState.DELIVERED, 1, ["delivered"])


def test_a_retry_sends_the_same_bytes_under_the_same_id_whk_04(make_endpoint, receiver, clock) -> None:
    endpoint = make_endpoint(receiver.url)
    receiver.plan = [answer(500, b"no")]
    on(make_lane())
    deliver(endpoint, clock)
    assert deliver(endpoint, clock).delivered == 0, "a message rests after a failure"

    clock.on(10)
    deliver(endpoint, clock)

    first, second = receiver.requests
    assert (first.id, first.body) == (second.id, second.body)
    assert first.headers["webhook-timestamp"] != second.headers["webhook-timestamp"]
    differing = {name for name in first.headers if first.headers[name] != second.headers.get(name)}
    assert differing == {"webhook-timestamp", "webhook-signature"}


def test_a_consumer_that_worked_and_answered_too_late_gets_the_same_id_whk_09(make_endpoint, receiver, clock) -> None:
    endpoint = make_endpoint(receiver.url)
    receiver.plan = [hang]
    on(make_lane())
    deliver(endpoint, clock)

    clock.on(10)
    deliver(endpoint, clock)

    assert receiver.ids[0] == receiver.ids[1]
    assert outcomes(Delivery.objects.get()) == ["timeout", "delivered"]


def test_message_2_of_a_ticket_waits_for_1_and_other_tickets_do_not(make_endpoint, receiver, clock) -> None:
    endpoint = make_endpoint(receiver.url, kinds=["decision", "item.opened"])
    lane = make_lane()
    [first] = on(lane)
    ticket = first.ticket
    ticket.refresh_from_db()
    second = outbox.record(MessageKind.ITEM_OPENED, {}, now=T0, ticket=ticket, lane=lane)
    receiver.plan = [answer(500)]
    deliver(endpoint, clock)
    # Only now, since calls go out side by side: the failure is to meet the first ticket's message.
    [elsewhere] = on(lane)
    deliver(endpoint, clock)
    assert receiver.ids == [str(first.key), str(elsewhere.key)]

    clock.on(10)
    deliver(endpoint, clock)

    assert receiver.ids[2:] == [str(first.key), str(second.key)]


def test_a_message_that_is_given_up_lets_the_next_of_its_ticket_go(make_endpoint, receiver, clock) -> None:
    endpoint = make_endpoint(receiver.url, kinds=["decision", "item.opened"], max_tries=1)
    [first] = on(make_lane())
    ticket = first.ticket
    ticket.refresh_from_db()
    second = outbox.record(MessageKind.ITEM_OPENED, {}, now=T0, ticket=ticket)
    receiver.plan = [answer(400, b"unknown ticket")]

    deliver(endpoint, clock)

    assert receiver.ids == [str(first.key), str(second.key)]
    assert Delivery.objects.get(message=first).state == DeliveryState.GIVEN_UP
    assert Delivery.objects.get(message=second).state == DeliveryState.DELIVERED


def test_a_message_that_cannot_be_sent_is_a_failed_try_of_its_own_cel_04(
    monkeypatch: pytest.MonkeyPatch, make_endpoint, receiver, clock
) -> None:
    endpoint = make_endpoint(receiver.url, max_tries=2)
    broken, *fine = on(make_lane(), 3)

    def content(message: Message) -> bytes:
        if message.pk == broken.pk:
            raise ValueError("no envelope holds it")
        return envelopes.content(message)

    monkeypatch.setattr("queue_core.relay.sending.content", content)
    first = deliver(endpoint, clock)
    clock.on(100)
    deliver(endpoint, clock)

    assert (first.delivered, first.failed) == (2, 1)
    assert sorted(receiver.ids) == sorted(str(message.key) for message in fine)
    left = Delivery.objects.get(message=broken)
    assert (left.state, outcomes(left)) == (DeliveryState.GIVEN_UP, ["failed", "failed"])


def test_a_dead_consumer_costs_four_tries_and_then_one_now_and_then(make_endpoint, receiver, clock) -> None:
    endpoint = make_endpoint(receiver.url, parallel=1)
    receiver.then = answer(503)
    on(make_lane(), 10)

    for _round in range(5):
        deliver(endpoint, clock)
    assert len(receiver.requests) == OPENS_AFTER

    clock.on(20)
    deliver(endpoint, clock)
    assert len(receiver.requests) == OPENS_AFTER + 1
    endpoint.refresh_from_db()
    assert endpoint.open_until is not None
    assert endpoint.failing_since is not None

    receiver.then = answer(204)
    clock.on(60)
    deliver(endpoint, clock)
    endpoint.refresh_from_db()
    assert (endpoint.failures, endpoint.open_until) == (0, None)
    assert Delivery.objects.filter(state="pending").count() <= 5


def test_a_consumer_that_hangs_delays_no_other(make_endpoint, receiver, other, clock) -> None:
    hanging, healthy = make_endpoint(receiver.url, "hanging"), make_endpoint(other.url, "healthy")
    receiver.then = hang
    on(make_lane(), 5)
    relay.step(clock=clock)

    assert relay.send_due(hanging.pk, clock=clock).failed == 4
    assert relay.send_due(healthy.pk, clock=clock).delivered == 5


def test_a_retry_after_is_heeded_within_a_limit(make_endpoint, receiver, clock) -> None:
    endpoint = make_endpoint(receiver.url)
    receiver.plan = [answer(429, Retry_After="100")]
    on(make_lane())
    deliver(endpoint, clock)

    clock.on(60)
    assert deliver(endpoint, clock).delivered == 0
    clock.on(65)
    assert deliver(endpoint, clock).delivered == 1


def test_an_endpoint_that_answers_gone_is_disabled_and_its_messages_are_kept(make_endpoint, receiver, clock) -> None:
    endpoint = make_endpoint(receiver.url)
    receiver.plan = [answer(410)]
    on(make_lane(), 1)
    deliver(endpoint, clock)
    endpoint.refresh_from_db()
    assert (endpoint.state, endpoint.changed_state_by) == (EndpointState.DISABLED, None)
    clock.on(100)
    on(make_lane(), 1)
    assert deliver(endpoint, clock).delivered == 0

    Endpoint.objects.filter(pk=endpoint.pk).update(state="enabled", open_until=None)

    assert deliver(endpoint, clock).delivered == 2


def test_a_sender_that_vanished_leaves_a_try_of_unknown_effect_and_the_message_goes_again(
    make_endpoint, receiver, clock
) -> None:
    endpoint = make_endpoint(receiver.url)
    on(make_lane())
    relay.step(clock=clock)
    assert len(rows.take(endpoint, 4, clock=clock)) == 1
    assert deliver(endpoint, clock).delivered == 0

    clock.on(60)
    relay.step(clock=clock)
    clock.on(10)
    deliver(endpoint, clock)

    assert outcomes(Delivery.objects.get()) == ["lost", "delivered"]


def test_a_success_that_is_written_down_late_counts_all_the_same(make_endpoint, receiver, clock) -> None:
    endpoint = make_endpoint(receiver.url)
    on(make_lane())
    relay.step(clock=clock)
    [taken] = rows.take(endpoint, 1, clock=clock)
    clock.on(60)
    relay.sweep(clock=clock)

    rows.end(endpoint.pk, [(taken, relay.Answer(TryOutcome.DELIVERED, 200))], clock=clock)

    assert Delivery.objects.get().state == DeliveryState.DELIVERED
    assert found_by("delivery_state") == []


def test_a_failure_that_is_written_down_late_changes_nothing(make_endpoint, receiver, clock) -> None:
    endpoint = make_endpoint(receiver.url)
    on(make_lane())
    relay.step(clock=clock)
    [taken] = rows.take(endpoint, 1, clock=clock)
    clock.on(60)
    relay.sweep(clock=clock)
    before = Delivery.objects.values().get()

    rows.end(endpoint.pk, [(taken, relay.Answer(TryOutcome.FAILED, 500))], clock=clock)

    assert Delivery.objects.values().get() == before


def test_a_second_sender_of_an_endpoint_returns_at_once(make_endpoint, receiver, clock) -> None:
    endpoint = make_endpoint(receiver.url)
    on(make_lane())
    relay.step(clock=clock)
    Endpoint.objects.update(sender=uuid4(), sender_until=clock.now() + timedelta(seconds=5))

    assert relay.send_due(endpoint.pk, clock=clock).stop == "somebody else sends"

    clock.on(6)
    assert relay.send_due(endpoint.pk, clock=clock).delivered == 1


def test_a_withdrawn_message_goes_to_nobody(make_endpoint, receiver, clock) -> None:
    endpoint = make_endpoint(receiver.url)
    [message] = on(make_lane())
    relay.step(clock=clock)
    relay.withdraw([message.pk], now=clock.now())

    deliver(endpoint, clock)

    assert receiver.requests == []


class TestSecrets:
    def test_while_it_is_changed_both_secrets_verify_and_afterwards_the_new_one(
        self, make_endpoint, receiver, clock, ada
    ) -> None:
        endpoint = make_endpoint(receiver.url)
        old = secret_of(endpoint)
        new = relay.new_secret(endpoint.pk, person=ada, clock=clock, old_signs_for=timedelta(seconds=100))
        lane = make_lane()
        on(lane)
        deliver(endpoint, clock)
        clock.on(120)
        on(lane)
        deliver(endpoint, clock)

        during, after = receiver.requests

        for secret in (old, new):
            Webhook(secret).verify(during.body, during.headers)
        Webhook(new).verify(after.body, after.headers)
        with pytest.raises(Exception, match="No matching signature"):
            Webhook(old).verify(after.body, after.headers)

    def test_it_is_in_no_row_and_in_no_audit(self, make_endpoint, clock, ada) -> None:
        endpoint = make_endpoint("https://consumer.example/")

        secret = relay.new_secret(endpoint.pk, person=ada, clock=clock)

        kept = json.dumps(
            [list(model.objects.values()) for model in (EndpointSecret, Endpoint, AuditEntry)], default=str
        )
        assert secret.removeprefix("whsec_") not in kept
        assert AuditEntry.objects.get(act="endpoint.secret_made").after["fingerprint"] in kept

    def test_it_outlives_a_change_of_the_secret_key_while_the_old_one_is_a_fallback(
        self, make_endpoint, receiver, clock, settings
    ) -> None:
        endpoint = make_endpoint(receiver.url)
        secret, old_key = secret_of(endpoint), settings.SECRET_KEY
        settings.SECRET_KEY = "another-key-0123456789abcdef0123456789abcdef"
        settings.SECRET_KEY_FALLBACKS = [old_key]
        on(make_lane())
        deliver(endpoint, clock)
        Webhook(secret).verify(receiver.requests[0].body, receiver.requests[0].headers)

        settings.SECRET_KEY_FALLBACKS = []
        on(make_lane())
        deliver(endpoint, clock)

        assert len(receiver.requests) == 1
        assert Delivery.objects.latest("pk").last_outcome == TryOutcome.NO_SECRET
        EndpointSecret.objects.all().delete()
        with_secret(endpoint)
        clock.on(10)
        assert deliver(endpoint, clock).delivered == 1

    def test_only_an_administrator_makes_one_and_the_old_one_signs_for_30_days_at_most(
        self, make_endpoint, clock, leo, ada
    ) -> None:
        endpoint = make_endpoint("https://consumer.example/")
        with pytest.raises(NotPermitted):
            relay.new_secret(endpoint.pk, person=leo, clock=clock)
        with pytest.raises(InvalidRequest, match="30 days"):
            relay.new_secret(endpoint.pk, person=ada, clock=clock, old_signs_for=timedelta(days=31))


class TestActs:
    def test_a_disabled_endpoint_gets_nothing_and_what_was_kept_when_it_is_enabled(
        self, make_endpoint, receiver, clock, leo
    ) -> None:
        endpoint = make_endpoint(receiver.url)
        assert relay.disable(endpoint.pk, person=leo, reason="their release", clock=clock).outcome == "done"
        assert relay.disable(endpoint.pk, person=leo, clock=clock).outcome == "already"
        on(make_lane(), 3)
        assert deliver(endpoint, clock).delivered == 0

        relay.enable(endpoint.pk, person=leo, clock=clock)

        assert deliver(endpoint, clock).delivered == 3
        acts = list(AuditEntry.objects.order_by("pk").values_list("act", "reason"))
        assert acts == [("endpoint.disabled", "their release"), ("endpoint.enabled", "")]

    def test_a_retired_endpoint_gets_nothing_ever_again(self, make_endpoint, receiver, clock, ada) -> None:
        endpoint = make_endpoint(receiver.url)
        on(make_lane(), 2)
        relay.step(clock=clock)

        relay.retire(endpoint.pk, person=ada, clock=clock)

        on(make_lane(), 1)
        assert deliver(endpoint, clock).delivered == 0
        assert list(Delivery.objects.values_list("state", flat=True)) == ["given_up"] * 2
        assert relay.enable(endpoint.pk, person=ada, clock=clock).outcome == "retired"

    def test_a_test_message_goes_to_a_disabled_endpoint_at_once_and_is_tried_once(
        self, make_endpoint, receiver, clock, leo
    ) -> None:
        endpoint = make_endpoint(receiver.url, state=EndpointState.DISABLED)
        on(make_lane())
        for plan in ([answer(500)], []):
            receiver.plan = plan
            assert relay.send_test(endpoint.pk, person=leo, clock=clock) is not None
            deliver(endpoint, clock)

        assert [request.message["type"] for request in receiver.requests] == ["endpoint.test"] * 2
        tests = Delivery.objects.filter(kind="endpoint.test").order_by("pk")
        assert [one.state for one in tests] == ["given_up", "delivered"]

    def test_trying_now_closes_the_circuit_and_ends_every_rest(self, make_endpoint, receiver, clock, leo) -> None:
        endpoint = make_endpoint(receiver.url)
        receiver.plan = [answer(503)] * 4
        on(make_lane(), 4)
        deliver(endpoint, clock)
        assert deliver(endpoint, clock).delivered == 0

        relay.try_now(endpoint.pk, person=leo, clock=clock)

        assert deliver(endpoint, clock).delivered == 4

    def test_a_replay_sends_the_same_id_again_with_a_budget_of_its_own(
        self, make_endpoint, receiver, clock, leo
    ) -> None:
        endpoint = make_endpoint(receiver.url, max_tries=2)
        [message] = on(make_lane())
        deliver(endpoint, clock)
        delivery = Delivery.objects.get()

        replayed = relay.replay(Delivery.objects.all(), up_to=delivery.pk, what="one", person=leo, clock=clock)
        deliver(endpoint, clock)

        assert (replayed.number, replayed.more) == (1, False)
        assert receiver.ids == [str(message.key)] * 2
        delivery.refresh_from_db()
        assert (delivery.state, delivery.tries, delivery.budget) == ("delivered", 2, 3)
        assert AuditEntry.objects.get(act="deliveries.replayed").after["deliveries"] == 1

    def test_a_replay_leaves_what_waits_what_was_withdrawn_and_what_came_after_the_page(
        self, make_endpoint, receiver, clock, leo
    ) -> None:
        endpoint = make_endpoint(receiver.url)
        first, second = on(make_lane(), 2)
        deliver(endpoint, clock)
        Message.objects.filter(pk=first.pk).update(state="withdrawn")
        seen = Delivery.objects.latest("pk").pk
        on(make_lane(), 1)
        deliver(endpoint, clock)
        on(make_lane(), 1)
        relay.step(clock=clock)

        replayed = relay.replay(Delivery.objects.all(), up_to=seen, what="", person=leo, clock=clock)

        assert replayed.number == 1
        assert Delivery.objects.get(message=second).state == "pending"

    @pytest.mark.django_db(transaction=True)
    def test_a_message_that_nobody_saw_and_a_recall_withdraws_meanwhile_is_not_replayed(
        self, make_endpoint, receiver, clock, leo
    ) -> None:
        endpoint = make_endpoint(receiver.url)
        [message] = on(make_lane())
        relay.number_messages(clock=clock)
        Delivery.objects.update(state="given_up", ended_at=clock.now())
        with holding(lambda: relay.withdraw([message.pk], now=clock.now())):
            replaying = started(
                "replaying",
                lambda: relay.replay(Delivery.objects.all(), up_to=2**62, what="", person=leo, clock=clock),
            )
            wait_until_blocked(replaying)

        assert replaying.outcome().number == 0
        deliver(endpoint, clock)
        assert receiver.requests == []

    def test_who_may_not_manage_deliveries_does_none_of_it(self, make_endpoint, clock, person) -> None:
        endpoint, rita = make_endpoint("https://consumer.example/"), person("rita", "reviewer")
        for act in (relay.disable, relay.enable, relay.retire, relay.try_now, relay.send_test):
            with pytest.raises(NotPermitted):
                act(endpoint.pk, person=rita, clock=clock)
        with pytest.raises(NotPermitted):
            relay.replay(Delivery.objects.all(), up_to=1, what="", person=rita, clock=clock)


def test_a_consumer_that_fails_hangs_redirects_and_comes_back_has_every_decision_once(
    make_endpoint, receiver, other, clock, tmp_path, request
) -> None:
    """The consumer of docs/examples: each message verified, none lost, repeated ones known by their id."""
    endpoint = make_endpoint(receiver.url)
    consumer = example().Consumer(str(tmp_path / "consumer.sqlite"), [secret_of(endpoint)])
    request.addfinalizer(consumer.close)
    took: list[str] = []

    def take(receiver, handler, sent) -> None:
        took.append(consumer.take(sent.body, sent.headers))
        answer(204)(receiver, handler, sent)

    def take_and_hang(receiver, handler, sent) -> None:
        took.append(consumer.take(sent.body, sent.headers))
        hang(receiver, handler, sent)

    away = answer(307, Location=f"http://127.0.0.1:{other.port}/secret")
    receiver.plan = [answer(500), take_and_hang, away, take_and_hang, away, answer(500), take]
    receiver.then = take
    messages = on(make_lane(), 12)

    for _round in range(40):
        deliver(endpoint, clock)
        if not Delivery.objects.filter(state="pending").exists():
            break
        clock.on(6)

    assert set(Delivery.objects.values_list("state", flat=True)) == {"delivered"}
    assert consumer.verdicts() == {("test", message.body["ticket"]): "APPROVED" for message in messages}
    assert took.count("handled") == 12
    assert set(took) == {"handled", "repeated"}
    assert set(receiver.ids) == {str(message.key) for message in messages}
    assert other.requests == []


def test_the_example_consumer_lets_nothing_older_undo_a_newer_decision_and_refuses_forgeries(
    make_endpoint, clock, tmp_path
) -> None:
    endpoint = make_endpoint("https://consumer.example/")
    secret = secret_of(endpoint)
    consumer = example().Consumer(str(tmp_path / "c.sqlite"), ["whsec_" + "b2xk" * 8, secret])

    def message(kind: str, number: int, **data: object) -> tuple[bytes, dict[str, str]]:
        body = json.dumps(
            {"id": str(uuid4()), "number": number, "type": kind, "data": {"source": "s", "ticket": "t", **data}}
        ).encode()
        return body, relay.sign([secret], str(uuid4()), clock.now(), body)

    assert consumer.take(*message("decision", 2, verdict="REJECTED")) == "handled"
    assert consumer.take(*message("decision", 1, verdict="APPROVED")) == "older"
    assert consumer.take(*message("item.opened", 3)) == "ignored"
    assert consumer.verdicts() == {("s", "t"): "REJECTED"}
    assert consumer.take(*message("decision.recalled", 4)) == "handled"
    assert consumer.verdicts() == {("s", "t"): None}
    body, headers = message("decision", 5, verdict="APPROVED")
    with pytest.raises(Exception, match="No matching signature"):
        consumer.take(body.replace(b"APPROVED", b"REJECTED"), headers)
    consumer.close()

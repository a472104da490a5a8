"""The two ways to say where tickets wait agree: one job at a time, and one statement for all."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from random import Random

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from queue_core import where
from queue_core.models import Delivery, Endpoint, Job, Message
from queue_core.where import Cause, Layer, Moves
from tests.factories import at, done_job, make_lane, waiting_job
from tests.where.rows import LANES, NOW, a_job, a_lane, attend, settle

pytestmark = pytest.mark.django_db


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    chance=st.randoms(use_true_random=False),
    states=st.lists(st.sampled_from(LANES), min_size=1, max_size=2),
    jobs=st.integers(1, 6),
    attended=st.sampled_from(["nobody", "drainer", "worker"]),
)
def test_one_job_at_a_time_and_all_at_once_agree_and_sum_to_all_open_obs_05(
    chance: Random, states: list[str], jobs: int, attended: str
) -> None:
    with rolled_back():
        for state in states:
            lane = a_lane(state)
            for _number in range(jobs):
                a_job(lane, chance)
            settle(lane, state)
            attend(lane, attended)

        agree()


def test_lanes_of_every_state_agree_job_by_job() -> None:
    chance = Random(7)
    for state in LANES:
        lane = a_lane(state)
        for _number in range(5):
            a_job(lane, chance)
        settle(lane, state)
        attend(lane, chance.choice(["nobody", "drainer", "worker"]))

    agree()


def agree() -> None:
    """Each open job is in one layer, by both ways; the sums are those of all open; and so are the filters of the list
    and what each layer is made of."""
    lanes = list(where.lanes_to_read())
    table = where.layers(lanes, now=at(NOW))
    jobs = list(Job.objects.select_related("ticket"))
    standings = {job.pk: where.locate(job, now=at(NOW)) for job in jobs}

    by_job = Counter((job.lane_id, standings[job.pk].layer) for job in jobs if standings[job.pk].layer)
    by_all = {(lane, layer): one.count for lane, counts in table.items() for layer, one in counts.counts.items()}
    assert by_all == dict(by_job)
    assert sum(one.total for one in table.values()) == sum(1 for one in standings.values() if one.layer is not None)
    for layer in Layer:
        filtered = set(where.in_layer(Job.objects.all(), layer, now=at(NOW)).values_list("pk", flat=True))
        assert filtered == {pk for pk, one in standings.items() if one.layer == layer}, layer
    for lane in lanes:
        for layer, made in where.make_up(lane, now=at(NOW)).items():
            here = [job for job in jobs if job.lane_id == lane.pk and standings[job.pk].layer == layer]
            assert made.by_severity == Counter(job.severity for job in here), layer
            assert made.by_exposure == Counter(job.ticket.exposure for job in here), layer
            assert made.by_prospect == Counter(standings[job.pk].prospect for job in here), layer


@contextmanager
def rolled_back() -> Iterator[None]:
    """Examples of a property leave nothing to one another."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def test_the_oldest_of_a_layer_is_its_longest_wait() -> None:
    chance = Random(99)
    lane = a_lane("steady")
    for _number in range(40):
        a_job(lane, chance)

    counts = where.layers(list(where.lanes_to_read()), now=at(NOW))[lane.pk].counts

    for layer, one in counts.items():
        waits = [at(NOW) - job.queued_at for job in Job.objects.all() if where.locate(job, now=at(NOW)).layer == layer]
        assert one.oldest == max(waits), layer


def test_layers_of_all_lanes_take_a_fixed_number_of_queries(django_assert_num_queries) -> None:
    for state in LANES:
        settle(a_lane(state), state)
    lanes = list(where.lanes_to_read())

    with django_assert_num_queries(1):
        where.layers(lanes, now=at(NOW))


def test_no_lanes_have_no_layers() -> None:
    assert where.layers([], now=at(NOW)) == {}
    assert not where.in_layer(Job.objects.all(), Layer.HELD, now=at(NOW), lane_ids=[]).exists()


def test_delivery_holds_what_an_endpoint_wants_and_lacks_until_it_has_it() -> None:
    lane, careful = make_lane(), make_lane(run={"keeps_back": True})
    sent, lacking, kept = done_job(lane), done_job(lane), done_job(careful)
    waiting_job(lane)
    endpoint = Endpoint.objects.create(name="shop", address="https://shop.test/", kinds=["decision"], created_at=at(0))
    for job, state in ((sent, "delivered"), (lacking, "pending")):
        message = Message.objects.get(decision__attempt__job=job)
        ended = {"ended_at": at(40)} if state == "delivered" else {}
        Delivery.objects.create(
            message=message, endpoint=endpoint, ticket=job.ticket, lane=lane, kind="decision", state=state, budget=9,
            due_at=at(60), created_at=at(30), tries=2, **ended,
        )  # fmt: skip

    agree()

    tables = where.layers(list(where.lanes_to_read()), now=at(NOW))
    assert [tables[pk].count_of(Layer.DELIVERY) for pk in (lane.pk, careful.pk)] == [1, 1]
    assert tables[lane.pk].counts[Layer.DELIVERY].oldest == timedelta(seconds=NOW - 30)
    said = where.locate(lacking, now=at(NOW))
    assert (said.cause, said.moves, said.params["endpoint"]) == (Cause.NOT_DELIVERED, Moves.DELIVERY, "shop")
    assert where.locate(kept, now=at(NOW)).cause == Cause.KEPT_BACK
    assert where.locate(sent, now=at(NOW)).cause == Cause.DECIDED


def test_delivery_holds_nothing_where_no_endpoint_wants_decisions_of_the_lane() -> None:
    lane = make_lane(run={"keeps_back": True})
    job = done_job(lane)
    Endpoint.objects.create(
        name="other", address="https://other.test/", kinds=["decision"], lanes=[lane.pk + 1], created_at=at(0)
    )

    assert where.locate(job, now=at(NOW)).layer is None
    agree()

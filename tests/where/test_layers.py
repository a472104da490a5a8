"""The two ways to say where tickets wait agree: one job at a time, and one statement for all."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from queue_core import where
from queue_core.models import Job, Lane
from queue_core.where import Layer
from tests.factories import at
from tests.where.rows import LANES, NOW, a_job, a_lane, attend, settle

pytestmark = pytest.mark.django_db


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    chance=st.randoms(use_true_random=False),
    states=st.lists(st.sampled_from(LANES), min_size=1, max_size=2),
    jobs=st.integers(1, 6),
    attended=st.sampled_from(["nobody", "drainer", "worker"]),
)
def test_one_job_at_a_time_and_all_at_once_agree_and_sum_to_all_open(
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

    with django_assert_num_queries(9):
        where.layers(lanes, now=at(NOW))


def test_no_lanes_have_no_layers() -> None:
    assert where.layers([], now=at(NOW)) == {}
    assert not where.in_layer(Job.objects.all(), Layer.HELD, now=at(NOW), lane_ids=[]).exists()


def test_delivery_holds_nothing_while_there_are_no_endpoints() -> None:
    assert not where.in_layer(Job.objects.all(), Layer.DELIVERY, now=at(NOW)).exists()
    assert Lane.objects.count() == 0

"""The demo's data, as the first 60 seconds need it."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from queue_core.clock import DATABASE_CLOCK
from queue_core.connections.local import weights
from queue_core.models import Attempt, Decision, Item, Job, KnownAnswer, Lane, Outage
from queue_core.states import HoldReason, JobState
from reviewboard.demo import seed

pytest.importorskip("profanity_check", reason="the local model is not installed (group reviewer)")


@pytest.fixture(scope="module")
def seeded(put_back: Callable[[], None], django_db_blocker: pytest.FixtureRequest):
    """Seeded once for the module: it takes seconds."""
    with django_db_blocker.unblock():
        said: list[str] = []
        seed.prepare(said.append)
        yield said
        seed.wipe()
        put_back()


@pytest.mark.django_db
def test_the_posts_lane_is_on_hold_since_hours_because_the_model_was_unavailable(seeded: list[str]) -> None:
    lane = Lane.objects.select_related("hold", "connection").get(name="posts")

    assert lane.hold is not None
    assert (lane.hold.is_automatic, lane.hold.reason) == (True, HoldReason.AUTO_UNAVAILABLE)
    assert DATABASE_CLOCK.now() - lane.hold.started_at > timedelta(hours=3)
    assert lane.connection.health_is_good


@pytest.mark.django_db
def test_some_two_hundred_wait_and_dozens_pass_their_deadline_within_the_hour(seeded: list[str]) -> None:
    now = DATABASE_CLOCK.now()
    waiting = Job.objects.filter(lane__name="posts", state=JobState.WAITING)

    assert 180 <= waiting.count() <= 220
    assert 24 <= waiting.filter(deadline__gt=now, deadline__lte=now + timedelta(hours=1)).count() <= 80


@pytest.mark.django_db
def test_a_second_lane_runs_at_stage_two_and_about_a_dozen_items_wait(seeded: list[str]) -> None:
    reviews = Lane.objects.select_related("run").get(name="reviews")

    assert reviews.run is not None
    assert reviews.run.number == 2
    assert 10 <= Item.objects.filter(closed_at__isnull=True).count() <= 25


@pytest.mark.django_db
def test_known_answers_that_the_real_model_gives_wait_for_the_next_stage(seeded: list[str]) -> None:
    known = list(KnownAnswer.objects.filter(lane__name="posts"))
    scores = weights().predict([one.text for one in known])

    assert len(known) == 4
    assert all((score >= 0.85) == (one.expected == "REJECTED") for one, score in zip(known, scores, strict=True))
    assert all(score >= 0.85 or score < 0.45 for score in scores)


@pytest.mark.django_db
def test_yesterdays_outage_is_over_and_tonights_is_open(seeded: list[str]) -> None:
    outages = list(Outage.objects.order_by("opened_at"))

    assert [outage.closed_at is None for outage in outages] == [False, True]


@pytest.mark.django_db
def test_the_past_is_a_true_ledger(seeded: list[str]) -> None:
    """Each DONE job has one committed attempt with its fence; each verdict one decision; nothing is in the future."""
    now = DATABASE_CLOCK.now()
    for job in Job.objects.filter(state=JobState.DONE):
        committed = Attempt.objects.filter(job=job, is_committed=True)
        assert [attempt.fence for attempt in committed] == [job.fence]
        decided = Decision.objects.filter(job=job, attempt__isnull=False).count()
        assert decided == (job.result in ("APPROVED", "REJECTED"))
    assert not Attempt.objects.filter(started_at__gt=now).exists()


@pytest.mark.django_db
def test_fresh_data_is_not_worn_and_old_data_is(seeded: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert seed.is_seeded()
    assert not seed.is_worn()

    class Tomorrow:
        def now(self):
            return DATABASE_CLOCK.now() + timedelta(hours=24)

    monkeypatch.setattr(seed, "DATABASE_CLOCK", Tomorrow())
    assert seed.is_worn()

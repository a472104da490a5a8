"""Posts and reviews that come in while the demo runs, so that a model's condition shows in what becomes of them."""

import threading
from collections.abc import Iterator
from datetime import timedelta
from itertools import count
from random import Random

from queue_core import contract, wakeups
from queue_core.clock import Clock
from queue_core.contract import NewTicket
from queue_core.models import Job, Lane
from queue_core.states import JobState
from reviewboard.demo.seed import POSTS, REVIEWS
from reviewboard.demo.texts import DemoText, posts, reviews

#: One turn brings one post, and every third a review: about 30 and 10 a minute.
PACE = timedelta(seconds=2)
REVIEW_EVERY = 3
#: A lane on which so many wait gets no more: nobody raises it, and a demo left alone over night stays small.
MOST_WAITING = 1_000
LEAST_TIME, MOST_TIME = timedelta(minutes=20), timedelta(hours=4)


def arrive(stopping: threading.Event, *, clock: Clock) -> int:
    """Bring tickets until `stopping` is set. Returns how many."""
    chance, brought = Random(), 0  # noqa: S311  which post comes next is no secret
    texts = {POSTS: _endless(posts(), chance), REVIEWS: _endless(reviews(), chance)}
    for turn in count():
        for name in (POSTS, *([REVIEWS] if turn % REVIEW_EVERY == 0 else [])):
            brought += bring(name, next(texts[name]), chance, clock=clock)
        if stopping.wait(PACE.total_seconds()):
            break
    return brought


def bring(name: str, text: DemoText, chance: Random, *, clock: Clock) -> int:
    """One ticket for a lane of the demo, unless too many wait there. A lane that somebody renamed gets none."""
    lane = Lane.objects.filter(name=name).first()
    if lane is None or _waiting(lane) >= MOST_WAITING:
        return 0
    source, prefix = {POSTS: ("forum", "post"), REVIEWS: ("shop", "review")}[name]
    now = clock.now()
    ticket = NewTicket(
        source=source,
        external_id=f"{prefix}-live-{int(now.timestamp() * 1000)}",
        revision="1",
        lane=lane,
        evidence={"text": text.text, "language": text.language},
        deadline=now + LEAST_TIME + (MOST_TIME - LEAST_TIME) * chance.random(),
        # The most severe ones go to people at once: a stream of them would be all that the demo shows.
        severity=min(text.severity, 2),
        category=text.category,
        exposure=text.exposure,
    )
    contract.receive(ticket, clock=clock)
    wakeups.wake(lane.pk)
    return 1


def _waiting(lane: Lane) -> int:
    return Job.objects.filter(lane=lane, state=JobState.WAITING)[:MOST_WAITING].count()


def _endless(texts: tuple[DemoText, ...], chance: Random) -> Iterator[DemoText]:
    while True:
        yield from chance.sample(texts, len(texts))

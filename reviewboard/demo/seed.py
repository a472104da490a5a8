"""The demo's data: yesterday's outage, tonight's, a second lane, and a dozen items at the desk."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import count

from django.core.management import call_command
from django.utils.translation import gettext as _

from queue_core import audit, lanes, people, roles
from queue_core.clock import DATABASE_CLOCK
from queue_core.lanes import StagePlan
from queue_core.models import AuditEntry, Job, KnownAnswer, Lane, ModelConnection, Outage, ReasonCode, Stage
from queue_core.states import Exposure, JobState, Result
from queue_core.usual_policies import LOCAL_RULES
from reviewboard.demo.people import make_cast
from reviewboard.demo.story import DOWN, Arrival, Story, StoryClock
from reviewboard.demo.texts import DemoText, posts, reviews
from reviewboard.models import DemoModel, Person

type Progress = Callable[[str], None]

POSTS, REVIEWS = "posts", "reviews"
#: A connection is called otherwise than its lane: an outage of one is not the other's hold.
MODEL_OF = {POSTS: "posts-model", REVIEWS: "reviews-model"}
SEEDED = "demo.seeded"
KIND = "demo"
HOUR, MINUTE, SECOND = timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1)

#: Short soaks and small caps, so that a person can raise through all of it in a few minutes. The demo's strip says so.
PLAN = (
    StagePlan(1, "probe", cap=2, soak_completions=8, soak_time=8 * SECOND, least_sample=8),
    StagePlan(2, "trickle", cap=4, soak_completions=15, soak_time=12 * SECOND, least_sample=10),
    StagePlan(3, "half", cap=8, soak_completions=15, soak_time=12 * SECOND, least_sample=10),
    StagePlan(4, "steady", cap=20, soak_completions=0, soak_time=timedelta(0), least_sample=10),
)
#: Of our own, and far from any doubt of the local model.
KNOWN = (
    ("You are a stupid, worthless idiot.", Result.REJECTED),
    ("Shut up, you moron, nobody wants you here.", Result.REJECTED),
    ("Thank you, the parcel arrived on time.", Result.APPROVED),
    ("The recipe worked well, we had it for dinner.", Result.APPROVED),
)
#: How many posts come in at which time of the story; the rest wait tonight.
POSTS_BEFORE, POSTS_IN_YESTERDAYS_OUTAGE, POSTS_TODAY = 12, 20, 26
#: So many of tonight's deadlines are over already, and every so many-th of the rest passes within the hour.
OVER_ALREADY, SOON = 4, 4


def is_seeded() -> bool:
    return AuditEntry.objects.filter(act=SEEDED).exists()


def seeded_at() -> datetime | None:
    """When the present demo data was made."""
    return AuditEntry.objects.filter(act=SEEDED).order_by("-pk").values_list("at", flat=True).first()


def is_worn() -> bool:
    """Whether more than half of the deadlines of tonight's tickets are over, so that the demo shows mostly deaths."""
    outage = Outage.objects.filter(connection__name=MODEL_OF[POSTS]).order_by("-opened_at").first()
    if outage is None:
        return False
    tonight = Job.objects.filter(lane__name=POSTS, added_at__gte=outage.opened_at)
    over = tonight.filter(deadline__lte=DATABASE_CLOCK.now()).count()
    return over * 2 > tonight.count()


def wipe() -> None:
    """Empty the demo's database, but for what migrations made. Never called outside demo mode."""
    codes = list(ReasonCode.objects.order_by("pk"))
    call_command("flush", interactive=False, verbosity=0)
    roles.restore()
    for code in codes:
        code.pk = None  # the sequences begin anew
    # A project may listen to the flush and have put its own back.
    ReasonCode.objects.bulk_create(codes, ignore_conflicts=True)
    for code in ReasonCode.objects.all():
        people.keep_version(code, now=DATABASE_CLOCK.now())


def prepare(progress: Progress = lambda _text: None) -> None:
    """Fill an empty database with the demo, through the product's own verbs."""
    now = DATABASE_CLOCK.now()
    progress(_("People and roles"))
    cast = make_cast()
    story = Story(StoryClock(now - 30 * HOUR))
    progress(_("Two lanes and their models"))
    posts_lane, reviews_lane = _make_lanes(story.clock, cast["administrator"])
    progress(_("Yesterday: an outage, and how it ended (the model is loaded, this takes some seconds)"))
    texts = iter(posts())
    _play_yesterday(story, posts_lane, texts, cast, now)
    progress(_("Today: work as usual"))
    _play_today(story, posts_lane, texts, now)
    progress(_("Tonight: the model went down, and tickets pile up"))
    _play_tonight(story, posts_lane, list(texts), now)
    progress(_("The second lane, at stage 2"))
    _play_reviews(reviews_lane, cast, now)
    _recover(posts_lane, now)
    _write_known_answers([posts_lane, reviews_lane])
    audit.record(SEEDED, now=DATABASE_CLOCK.now(), actor=None, subject=posts_lane, lane=posts_lane)


def _make_lanes(clock: StoryClock, person: Person) -> tuple[Lane, Lane]:
    made = []
    for name, title in ((POSTS, "Posts"), (REVIEWS, "Product reviews")):
        connection = ModelConnection.objects.create(
            name=MODEL_OF[name], kind=KIND, model="demo", call_time_limit=4 * SECOND, address="demo"
        )
        DemoModel.objects.create(connection=connection, condition=DemoModel.Condition.UP, changed_at=clock.now())
        made.append(
            lanes.create_lane(
                name,
                connection,
                title=title,
                policy_rules=LOCAL_RULES,
                stages=PLAN,
                clock=clock,
                person=person,
                lease=10 * SECOND,
                max_attempts=3,
                drainers=2,
                wait_target=10 * MINUTE,
                exposure_default=Exposure.LIMITED,
                least_call_time=1 * SECOND,
            )
        )
    return made[0], made[1]


def _play_yesterday(
    story: Story, lane: Lane, texts: Iterator[DemoText], cast: dict[str, Person], now: datetime
) -> None:
    start, outage, back = now - 29 * HOUR, now - 27 * HOUR, now - 24 * HOUR
    _arrive(story, lane, _take(texts, POSTS_BEFORE), start, start + 20 * MINUTE, lasts=8 * HOUR)
    _raise_to_steady(story, lane, cast["night-lead"], start + 21 * MINUTE)
    _fail(story, lane, texts, outage)
    late = _take(texts, POSTS_IN_YESTERDAYS_OUTAGE)
    _arrive(story, lane, late, outage + 5 * MINUTE, back - 5 * MINUTE, lasts=9 * HOUR)
    story.clock.go_to(back)
    _raise_to_steady(story, lane, cast["lead"], back)
    story.clock.go_to(story.clock.moment + 10 * MINUTE)
    story.close_outage(lane, cast["lead"], "Running steadily again, no errors since the last raise.")
    story.decide_items(lane, [cast["reviewer"], cast["second-reviewer"]])


def _raise_to_steady(story: Story, lane: Lane, person: Person, at: datetime) -> None:
    """Through all stages, each raised when its own calls have soaked it; the probe and trickle draw what waits."""
    story.clock.go_to(at)
    reasons = (
        "The model answers again; a few harmless tickets first.",
        "No errors in the probe.",
        "Steady answers, people keep up.",
        "Error free; back to the usual flow.",
    )
    quotas = (8, 15, 15, None)
    for reason, quota, stage in zip(reasons, quotas, PLAN, strict=True):
        _top_up(story, lane, quota)
        story.raise_stage(lane, person, reason)
        story.work(lane, most=quota)
        story.clock.go_to(story.clock.moment + stage.soak_time + 5 * SECOND)


def _top_up(story: Story, lane: Lane, quota: int | None) -> None:
    """A stage needs as many tickets as its soak: short texts that arrive while the lead looks on."""
    soon = story.clock.moment + MINUTE
    waiting = Job.objects.filter(lane=lane, state=JobState.WAITING, deadline__gt=soon).count()
    missing = (quota or 0) - waiting
    if missing > 0:
        moment = story.clock.moment
        arrivals = [
            Arrival(text, moment + number * SECOND, moment + 12 * HOUR)
            for number, text in enumerate(_small_talk(missing))
        ]
        story.receive(lane, arrivals, source="forum", prefix="post", every=MINUTE)


def _small_talk(needed: int) -> list[DemoText]:
    harmless = [text for text in reviews() if text.severity == 0] or list(reviews())
    return [harmless[number % len(harmless)] for number in range(needed)]


def _fail(story: Story, lane: Lane, texts: Iterator[DemoText], at: datetime) -> None:
    """The model goes down under work: the lane holds itself after so many unavailable answers in a row."""
    needed = _take(texts, lane.unavailable_limit)
    _arrive(story, lane, needed, at - 2 * MINUTE, at, lasts=11 * HOUR)
    for _turn in range(lane.unavailable_limit):
        story.work(lane, condition=DOWN)
        if Lane.objects.get(pk=lane.pk).is_on_hold:
            return
    raise AssertionError("the story's lane did not hold itself")


def _play_today(story: Story, lane: Lane, texts: Iterator[DemoText], now: datetime) -> None:
    start, end = now - 7 * HOUR, now - 4 * HOUR
    for hour in range(3):
        share = _take(texts, POSTS_TODAY // 3)
        _arrive(story, lane, share, start + hour * HOUR, start + (hour + 1) * HOUR, lasts=14 * HOUR)
        story.work(lane)
    story.clock.go_to(end)


def _play_tonight(story: Story, lane: Lane, texts: Sequence[DemoText], now: datetime) -> None:
    down_at = now - 3 * HOUR - 12 * MINUTE
    rest = iter(texts)
    _fail(story, lane, rest, down_at)
    waiting = list(rest)
    step = (now - down_at - 2 * MINUTE) / len(waiting)
    arrivals = [
        Arrival(text, down_at + MINUTE + number * step, _deadline(number, down_at, now))
        for number, text in enumerate(waiting)
    ]
    story.receive(lane, arrivals, source="forum", prefix="post", every=6 * MINUTE)
    story.clock.go_to(now - 30 * SECOND)


def _deadline(number: int, down_at: datetime, now: datetime) -> datetime:
    if number < OVER_ALREADY:
        return down_at + (number + 6) * 20 * MINUTE
    if number % SOON == 0:
        return now + 9 * MINUTE + (number % 47) * MINUTE
    return now + HOUR + (number * 37 % 540) * MINUTE


def _play_reviews(lane: Lane, cast: dict[str, Person], now: datetime) -> None:
    """Recovering from nothing worse than a new lane: probe done, trickle running, a few tickets still waiting."""
    clock = StoryClock(now - 40 * MINUTE)
    story = Story(clock, _numbers=count(50_117))
    texts = iter(reviews())
    _arrive(story, lane, _take(texts, 30), now - 39 * MINUTE, now - 25 * MINUTE, source="shop", lasts=6 * HOUR)
    story.raise_stage(lane, cast["lead"], "First night with this model: a few tickets first.")
    story.work(lane, most=10)
    clock.go_to(clock.moment + 15 * SECOND)
    story.raise_stage(lane, cast["lead"], "The probe was clean.")
    story.work(lane)
    _arrive(story, lane, _take(texts, 30), now - 15 * MINUTE, now - SECOND, source="shop", lasts=6 * HOUR)


def _write_known_answers(lanes_to_ask: Sequence[Lane]) -> None:
    """What tells a model that is up, fast and wrong: asked at the start of each stage from now on, and each minute."""
    Stage.objects.filter(lane__in=lanes_to_ask).update(known_every=MINUTE)
    KnownAnswer.objects.bulk_create(
        KnownAnswer(lane=lane, title=text, text=text, expected=expected)
        for lane in lanes_to_ask
        for text, expected in KNOWN
    )


def _recover(lane: Lane, now: datetime) -> None:
    """The health check sees the model answer again. It moves nothing: that is the lead's to do."""
    ModelConnection.objects.filter(pk=lane.connection_id).update(
        health_checked_at=now, health_is_good=True, health_since=now - 11 * MINUTE
    )


def _arrive(
    story: Story,
    lane: Lane,
    texts: Sequence[DemoText],
    start: datetime,
    end: datetime,
    *,
    lasts: timedelta,
    source: str = "forum",
) -> None:
    step = (end - start) / max(len(texts), 1)
    arrivals = [
        Arrival(text, start + number * step, start + number * step + lasts) for number, text in enumerate(texts)
    ]
    prefix = {"forum": "post", "shop": "review"}[source]
    story.receive(lane, arrivals, source=source, prefix=prefix, every=10 * MINUTE)


def _take(texts: Iterator[DemoText], number: int) -> list[DemoText]:
    return [next(texts) for _index in range(number)]

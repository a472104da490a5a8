"""Two nights in a real browser, with real workers and a model server that fails on demand.

The first: outage, hold, probe, a guardrail that breaks, automatic hold, probe again, stages, steady, and the record of
it all. The second: the model is up, fast and wrong; the gate does not pass, and what was decided is recalled unread.
"""

import os
import signal
from datetime import datetime, timedelta

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect

from queue_core import alerts, contract, lanes, roles
from queue_core.clock import DATABASE_CLOCK
from queue_core.contract import NewTicket
from queue_core.lanes import StagePlan
from queue_core.models import (
    AlertEpisode,
    Decision,
    Item,
    Job,
    KnownAnswer,
    Lane,
    Message,
    ModelConnection,
    Outage,
    StageRun,
)
from reviewboard.model_server import running as model_running
from tests import browsing
from tests.connections.wires import HTTP_OPTIONS
from tests.endtoend.acts import assert_every_ticket_has_its_place, nothing_waits, raise_by_page, wait_for
from tests.factories import make_ground

pytestmark = [pytest.mark.browser, pytest.mark.processes, pytest.mark.timeout(400)]

SECOND = timedelta(seconds=1)
RULES = [{"category": "insult", "reject_at": 0.85, "approve_below": 0.45, "reason_code": "insult"}]
#: Wide enough that a model that is gone is told by its row of refusals, and only garbage throughout by its share.
SHORT = {
    "soak_completions": 4, "soak_time": SECOND, "least_sample": 4, "max_error_ratio": 0.9, "max_timeout_ratio": 1.0,
}  # fmt: skip
PLAN = (
    StagePlan(1, "probe", cap=2, **SHORT),
    StagePlan(2, "half", cap=4, **SHORT),
    StagePlan(3, "steady", cap=20, soak_completions=0, soak_time=timedelta(0), least_sample=20),
)
LOOKS = ((1280, "light"), (1280, "dark"), (390, "light"))


@pytest.fixture
def model():
    with model_running() as server:
        yield server


def a_lane(model, plan: tuple[StagePlan, ...], *, tickets: int) -> Lane:
    make_ground()
    connection = ModelConnection.objects.create(
        name="moderator",
        kind="http",
        address=f"{model.url}/review",
        options=HTTP_OPTIONS | {"at_once": 4},
        # The server is a thread of this test's own process: on a busy machine it answers late, which is not the story.
        call_time_limit=20 * SECOND,
    )
    lane = lanes.create_lane(
        "posts", connection, title="Posts", policy_rules=RULES, stages=plan, clock=DATABASE_CLOCK, lease=30 * SECOND
    )
    receive(lane, tickets)
    return lane


def receive(lane: Lane, number: int, *, prefix: str = "post") -> None:
    texts = ("Good morning, all.", "You are an idiot.", "Where is the bus stop?")
    tickets = [
        NewTicket(
            source="forum",
            external_id=f"{prefix}-{n}",
            revision="1",
            lane=lane,
            evidence={"text": f"{texts[n % 3]} ({n})"},
            severity=n % 2,
        )
        for n in range(number)
    ]
    contract.receive_many(tickets, clock=DATABASE_CLOCK)


def fresh(lane: Lane) -> Lane:
    return Lane.objects.select_related("hold", "run").get(pk=lane.pk)


def held(lane: Lane, reason: str) -> bool:
    now = fresh(lane)
    return now.is_on_hold and now.hold is not None and now.hold.reason == reason


def look(page: Page, name: str, *, axe: bool = True) -> None:
    """What a reader gets here, in both themes and on a phone."""
    for width, scheme in LOOKS:
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        (browsing.look if axe and width > 390 else browsing.stands_within_the_window)(page, name)
    page.set_viewport_size({"width": 1280, "height": 900})
    page.emulate_media(color_scheme="light")


@pytest.mark.long
def test_an_outage_from_its_hold_to_its_record(workers, somebody, browse, model):
    lane = a_lane(model, PLAN, tickets=200)
    model.set(latency=0.1)
    workers.start(processes=3)
    page = browse(somebody("lena", roles.LEAD))
    raise_by_page(page, "posts", "Start the probe", workers)
    wait_for(workers, lambda: Decision.objects.count() >= 4, "the probe has seen what it needs")
    raise_by_page(page, "posts", "Raise to stage 2, half", workers)

    model.set("down")
    wait_for(workers, lambda: held(lane, "auto_unavailable"), "the lane held itself")
    outage = Outage.objects.get()
    wait_for(workers, lambda: AlertEpisode.objects.filter(kind="automatic_hold").exists(), "somebody was told")
    decided = Decision.objects.count()
    page.goto("/")
    expect(page.locator(".alert-lines")).to_contain_text("put itself on hold")
    expect(page.get_by_role("main")).to_contain_text("the model was unavailable")
    look(page, "1-board-held")
    _acknowledge(page)

    # It answers again, but with garbage: the probe is raised by a person, and ended by its guardrail.
    model.set("garbage", latency=0.1)
    raise_by_page(page, "posts", "Start the probe", workers)
    wait_for(workers, lambda: held(lane, "auto_errors"), "the guardrail broke, and the lane held itself again")
    assert AlertEpisode.objects.filter(kind="automatic_hold").count() == 1, "once per outage"
    page.goto("/lanes/posts/")
    look(page, "2-lane-guardrail-broke", axe=False)

    model.set(latency=0.05)
    raise_by_page(page, "posts", "Start the probe", workers)
    raise_by_page(page, "posts", "Raise to stage 2, half", workers)
    raise_by_page(page, "posts", "Raise to stage 3, steady", workers)
    wait_for(workers, nothing_waits, "every ticket was reviewed")
    assert Decision.objects.count() > decided
    assert not Job.objects.filter(dead_reason="attempts").exists()
    assert_every_ticket_has_its_place()

    page.goto(reverse("outage", args=[outage.pk]))
    page.locator("summary", has_text="Close the outage").click()
    page.locator(f"form[action='{reverse('outage_close_here', args=[outage.pk])}']").get_by_label("Reason").fill(
        "Every ticket is decided, no errors since."
    )
    page.get_by_role("button", name="Close the outage").click()
    expect(page.get_by_role("main")).to_contain_text("declared steady running and closed the outage")
    _assert_record(page, outage)
    look(page, "3-record")
    wait_for(workers, lambda: _is_over("automatic_hold"), "and that it is over was told")
    _freeze_and_thaw(workers, lane)


class Ahead:
    """The database's clock, so much later: what half a minute shows, without waiting for it."""

    def now(self) -> datetime:
        return DATABASE_CLOCK.now() + timedelta(seconds=35)


def _freeze_and_thaw(workers, lane: Lane) -> None:
    """CEL-07: processes that are there and do nothing are not taken for workers; and whoever is left says so."""
    groups = [worker.pid for worker in workers._running]
    for group in groups:
        os.killpg(group, signal.SIGSTOP)
    receive(lane, 10, prefix="late")
    assert alerts.watch(clock=Ahead())
    standing = set(AlertEpisode.objects.filter(over_at__isnull=True).values_list("kind", flat=True))
    for group in groups:
        os.killpg(group, signal.SIGCONT)

    assert {"nobody", "scheduler_dead"} <= standing
    wait_for(workers, nothing_waits, "thawed, they go on where they stood")
    assert_every_ticket_has_its_place()


def _acknowledge(page: Page) -> None:
    page.goto("/alerts/")
    row = page.locator(".alert-row", has_text="put itself on hold")
    row.get_by_role("button", name="I look after it").click()
    expect(page.locator(".alert-row", has_text="lena looks after it")).to_have_count(1)
    look(page, "1-alerts")


def _is_over(kind: str) -> bool:
    return not AlertEpisode.objects.filter(kind=kind, over_at__isnull=True).exists()


def _assert_record(page: Page, outage: Outage) -> None:
    main = page.get_by_role("main")
    for sentence in (
        "Posts put itself on hold: the model was unavailable.",
        "Posts put itself on hold: too many errors.",
        "lena raised Posts to stage 1: at most 2 calls at once.",
        "lena raised Posts to stage 2: at most 4 calls at once.",
        "lena raised Posts to stage 3: at most 20 calls at once.",
    ):
        expect(main).to_contain_text(sentence)
    expect(main.locator("figure.chart")).to_have_count(1)
    record = page.request.get(reverse("outage_json", args=[outage.pk])).json()
    raises = [(one["stage"], one["by"]) for one in record["raises"]]
    assert raises == [(1, "lena"), (1, "lena"), (2, "lena"), (3, "lena")]
    assert all(one["figures"]["load"] for one in record["raises"])


@pytest.mark.long
def test_a_model_that_is_fast_and_wrong_passes_no_gate_and_its_decisions_are_recalled(workers, somebody, browse, model):
    plan = (
        StagePlan(1, "probe", cap=2, keeps_back=True, max_wrong_ratio=0.2, **SHORT),
        StagePlan(2, "steady", cap=20, soak_completions=0, least_sample=20),
    )
    lane = a_lane(model, plan, tickets=40)
    for number, (text, expected) in enumerate([("Good evening.", "APPROVED"), ("You idiot.", "REJECTED")] * 3):
        KnownAnswer.objects.create(lane=lane, title=f"known {number}", text=f"{text} ({number})", expected=expected)
    model.set("wrong", latency=0.1)
    workers.start(processes=3)
    page = browse(somebody("lena", roles.LEAD))

    raise_by_page(page, "posts", "Start the probe", workers)
    wait_for(workers, lambda: held(lane, "auto_wrong"), "known answers came back wrong, and the lane held itself")
    wait_for(workers, lambda: not Job.objects.filter(state="LEASED").exists(), "the running calls ended")

    run = StageRun.objects.get()
    kept_back = Message.objects.filter(decision__run=run)
    assert kept_back.exists()
    assert set(kept_back.values_list("state", flat=True)) == {"kept_back"}
    page.goto("/lanes/posts/")
    assert page.get_by_role("button", name="Raise to stage 2").count() == 0
    look(page, "4-lane-wrong", axe=False)

    number = Decision.objects.count()
    page.goto(f"{reverse('lane_recall', args=['posts'])}?run={run.pk}")
    if page.locator("#recall form").count() == 0:
        page.get_by_role("button", name="Count them").click()
    page.locator("#recall").get_by_label("Reason").fill("The known answers came back wrong.")
    look(page, "5-recall")
    page.locator("#recall form button.danger").click()
    wait_for(workers, lambda: _recalled() == number, "every decision of the run is recalled")

    assert set(kept_back.filter(kind="decision").values_list("state", flat=True)) == {"withdrawn"}
    assert not Message.objects.filter(kind="decision.recalled").exists(), "nobody had read them"
    assert not Decision.objects.filter(verdict__isnull=False, replaced_by__isnull=True).exists()
    assert Item.objects.filter(kind="recalled", closed_at__isnull=True).count() == number
    page.goto("/lanes/posts/")
    expect(page.get_by_role("main")).to_contain_text("on hold")


def _recalled() -> int:
    return Decision.objects.filter(why="recall", replaced_by__isnull=True).count()

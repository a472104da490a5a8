"""A real backlog, drained by real workers as a lead raises the flow in a real browser, and people decide the rest."""

from datetime import timedelta

import pytest
from playwright.sync_api import Page, expect

from queue_core import contract, roles
from queue_core.clock import DATABASE_CLOCK
from queue_core.models import Attempt, Decision, Item, Job, Lane, Stage, StageRun, Ticket
from tests.endtoend.acts import (
    a_backlog,
    assert_every_ticket_has_its_place,
    import_file,
    nothing_waits,
    raise_by_page,
    sealed,
    wait_for,
    write_lines,
)
from tests.workers.processes import wait_until

pytestmark = [pytest.mark.browser, pytest.mark.processes, pytest.mark.timeout(400)]

LANES = ("posts", "product-reviews")
TITLES = ("Start the probe", "Raise to stage 2, trickle", "Raise to stage 3, half", "Raise to stage 4, steady")
#: Claims in a minute, counted over all runs: so that each stage leaves something to the next.
RATES = {1: 10, 2: 25, 3: 45, 4: None}


def test_a_backlog_is_drained_stage_by_stage_and_every_ticket_ends_in_one_place(workers, somebody, browse, tmp_path):
    lines = a_backlog()
    late = [line | {"ticket": f"late-{n}", "deadline": "+5s"} for n, line in enumerate(lines[:3])]
    file = write_lines(tmp_path / "backlog.ndjson", [*lines, *late])
    total = len(lines) + len(late)
    assert f"{total} lines: {total} stored, 0 known" in import_file(file)
    evidence = sealed()
    _change_at_the_source(lines, tmp_path)
    _shorten_the_plan()
    # One of them is busy loading the model for the health check.
    workers.start(processes=3)

    died = Job.objects.filter(dead_reason="deadline")
    wait_for(workers, lambda: died.count() == len(late), "the short deadlines passed while the lane was held")

    page = browse(somebody("lena", roles.LEAD))
    for title in TITLES:
        for lane in LANES:
            raise_by_page(page, lane, title, workers)
        if title == TITLES[0]:
            _see_the_gate(page, LANES[0], workers)
    wait_for(workers, nothing_waits, "no ticket waits for the machine any more")

    assert_every_ticket_has_its_place()
    assert died.count() == len(late)
    assert {job.dead_reason for job in Job.objects.filter(dead_reason__in=["superseded", "withdrawn"])} == {
        "superseded", "withdrawn",
    }  # fmt: skip
    _assert_raised_by("lena")
    _assert_stages_kept_their_rates()
    assert {pk: body for pk, body in sealed().items() if pk in evidence} == evidence

    _assert_a_second_import_adds_nothing(file, [*lines, *late], total)

    rita = browse(somebody("rita", roles.REVIEWER))
    decided = _decide_one_by_keyboard(rita)
    requeued = _requeue_one(rita)
    wait_for(workers, nothing_waits, "the requeued ticket was reviewed")

    assert (decided.verdict, decided.person.username, decided.reason_code.code) == ("REJECTED", "rita", "insult")
    requeued.refresh_from_db()
    assert (requeued.state, requeued.fence, requeued.attempts) == ("DONE", 1, 1)
    assert_every_ticket_has_its_place()


def _change_at_the_source(lines, folder):
    """Meanwhile one text was edited and another deleted where they came from."""
    edited, deleted = lines[5], lines[6]
    newer = edited | {"revision": "2", "replaces": edited["revision"], "evidence": {"text": "Edited since."}}
    assert "1 stored" in import_file(write_lines(folder / "edited.ndjson", [newer]))
    assert contract.withdraw(source="import", external_id=deleted["ticket"], clock=DATABASE_CLOCK) == "done"


def _shorten_the_plan():
    for number, rate in RATES.items():
        Stage.objects.filter(number=number).update(
            rate=rate, soak_completions=5, soak_time=timedelta(seconds=1), least_sample=5
        )


def _see_the_gate(page: Page, lane: str, workers) -> None:
    """The open page turns its line good by itself, when the probe's calls have come in."""
    page.goto(f"/lanes/{lane}/")
    errors = page.locator("#live tbody tr", has_text="errors")
    wait_for(workers, lambda: "good" in errors.inner_text(), f"the gate of {lane} was shown good")
    expect(page.locator("h1")).to_contain_text(lane)


def _assert_raised_by(name: str) -> None:
    for lane in Lane.objects.all():
        runs = StageRun.objects.filter(lane=lane).order_by("pk")
        assert [run.number for run in runs] == [1, 2, 3, 4]
        assert {run.raised_by.username for run in runs} == {name}
        assert all(run.figures["lines"] for run in runs[1:])
        assert all(line["verdict"] == "good" for run in runs[1:] for line in run.figures["lines"])


def _assert_stages_kept_their_rates() -> None:
    """In no minute more than the stage's rate, however long the stage ran."""
    for run in StageRun.objects.exclude(rate=None):
        starts = list(Attempt.objects.filter(run=run).order_by("started_at").values_list("started_at", flat=True))
        assert len(starts) >= 5
        for first, one_too_many in zip(starts, starts[run.rate :], strict=False):
            assert one_too_many - first >= timedelta(minutes=1)


def _assert_a_second_import_adds_nothing(file, lines, total) -> None:
    rows = (Ticket.objects.count(), Job.objects.count(), len(sealed()))

    # The edited ticket's first revision is no longer the current one.
    again = f"{total} lines: 0 stored, {total - 1} known, 1 superseded, 0 in conflict, 0 refused."
    assert again in import_file(file)
    over = write_lines(file.with_name("over.ndjson"), [line | {"deadline": "-1h"} for line in lines])
    assert again in import_file(over)

    assert (Ticket.objects.count(), Job.objects.count(), len(sealed())) == rows


def _decide_one_by_keyboard(page: Page) -> Decision:
    page.goto("/desk/")
    _awake(page)
    page.keyboard.press("t")
    page.wait_for_url("**/desk/*/")
    item = Item.objects.get(taken_by__username="rita")
    _awake(page)
    page.keyboard.press("r")
    expect(page.locator("#id_reject")).to_be_checked()
    page.keyboard.press("Tab")
    page.keyboard.type("insult")
    page.keyboard.press("n")
    page.keyboard.press("Tab")
    page.keyboard.type("as plain as can be")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("Decided: REJECTED.")).to_be_visible()
    item.refresh_from_db()
    assert item.closed_as == "decided"
    return Decision.objects.get(job=item.job)


def _requeue_one(page: Page) -> Job:
    item = Item.objects.filter(kind="dead", closed_at=None, taken_by=None).earliest("pk")
    page.goto(f"/desk/{item.pk}/")
    page.get_by_role("button", name="Take it").click()
    page.locator("summary", has_text="Requeue").click()
    form = page.locator("form[action$='/requeue/']")
    form.get_by_label("Reason").fill("It died while the lane was on hold.")
    form.get_by_role("button", name="Requeue this job").click()
    page.wait_for_url("**/desk/")
    item.refresh_from_db()
    assert item.closed_as == "requeued"
    return item.job


def _awake(page: Page) -> None:
    """The decision keys of a page that just opened sleep for half a second."""

    def is_awake() -> bool:
        ready = page.evaluate("performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd")
        return ready > 0 and page.evaluate("performance.now()") - ready > 600

    wait_until(is_awake, "the page's keys are awake")

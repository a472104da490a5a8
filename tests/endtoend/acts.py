"""What people and the test do, by name."""

import io
import json
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.db.models import F
from playwright.sync_api import Page, expect

from queue_core import figures
from queue_core.models import Attempt, Decision, Evidence, Item, Job, Lane
from reviewboard.demo import texts
from tests.workers.processes import ROOT, Workers, wait_until

#: Texts that people really wrote, beside the project where there are any. They stay out of the project's own files.
REAL_TEXTS = ROOT.parent / "shared" / "data" / "real-texts.ndjson"
MOST_LINES = 250
OPEN = ("WAITING", "LEASED")


def a_backlog() -> list[dict[str, Any]]:
    """Lines of two lanes: a part of the real texts, or texts of our own where those are not there."""
    lines = _real_lines() if REAL_TEXTS.exists() else _own_lines()
    # Time enough for a slow machine; what dies of its deadline is added by the test.
    return [line | {"deadline": "+4h"} for line in lines]


def _real_lines() -> list[dict[str, Any]]:
    with REAL_TEXTS.open(encoding="utf-8") as stream:
        whole = [json.loads(line) for line in stream]
    step = max(1, len(whole) // MOST_LINES)
    return list(islice(whole[::step], MOST_LINES))


def _own_lines() -> list[dict[str, Any]]:
    chosen = [*texts.posts()[: MOST_LINES - 60], *texts.reviews()[:60]]
    return [
        {
            "lane": "posts" if text.kind == "post" else "product-reviews",
            "ticket": f"{text.kind}-{number}",
            "revision": "1",
            "submitted_at": f"-{number}m",
            "evidence": {"text": text.text, "language": text.language, "kind": text.kind},
            "severity": min(text.severity, 2),
        }
        for number, text in enumerate(chosen)
    ]


def write_lines(path: Path, lines: Iterable[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def import_file(path: Path) -> str:
    """The account that the command printed."""
    out = io.StringIO()
    call_command("import_tickets", str(path), create_lanes=True, stdout=out)
    return out.getvalue()


#: Loading the model takes a worker some seconds, and a busy machine a minute.
LOADING = 150.0


def wait_for(workers: Workers, condition: Callable[[], bool], message: str, *, limit: float = LOADING) -> None:
    def holds() -> bool:
        workers.assert_alive()
        return condition()

    try:
        wait_until(holds, message, limit=limit)
    except AssertionError as fault:
        raise AssertionError(f"{fault}\n{workers.logs()[-6000:]}") from fault


def nothing_waits(*lanes: str) -> bool:
    open_jobs = Job.objects.filter(state__in=OPEN)
    return not (open_jobs.filter(lane__name__in=lanes) if lanes else open_jobs).exists()


def raise_by_page(page: Page, lane: str, title: str, workers: Workers) -> None:
    """Open the lane, wait until nothing is missing, give the reason, press the button, and see the stage run."""
    before = Lane.objects.get(name=lane).run_id

    def is_offered() -> bool:
        page.goto(f"/lanes/{lane}/")
        form = page.locator("#raise form")
        return form.count() == 1 and form.is_visible() and page.locator("#raise .notice").count() == 0

    wait_for(workers, is_offered, f"{lane}: “{title}” is offered without anything missing")
    page.get_by_label("Reason").first.fill("The figures are as they should be.")
    page.locator("#raise").get_by_role("button", name=title).click()
    wait_for(workers, lambda: Lane.objects.get(name=lane).run_id not in (None, before), f"{lane}: {title}")
    expect(page.locator("#raise").get_by_role("button", name=title, exact=True)).to_have_count(0)


def assert_every_ticket_has_its_place() -> None:
    """The sum of DESIGN.md's "Decisions", and what must never happen twice."""
    for lane in (None, *Lane.objects.all()):
        account = figures.account(lane)
        assert account.balances, account
        assert account.not_reviewed == 0, account
    committed = Attempt.objects.filter(is_committed=True)
    assert committed.count() == Job.objects.filter(state="DONE").count()
    assert not committed.exclude(fence=F("job__fence")).exists()
    assert committed.count() == committed.values("job").distinct().count()
    assert not Attempt.objects.filter(ended_at__isnull=True).exists()
    in_force = Decision.objects.filter(replaced_by__isnull=True)
    assert in_force.count() == in_force.values("ticket", "revision").distinct().count()
    assert not Item.objects.filter(closed_at__isnull=True, job__state__in=OPEN).exists()


def sealed() -> dict[int, str]:
    return dict(Evidence.objects.values_list("pk", "body"))

"""An erasure reaches the lines of uploaded files that named its ticket and did not go in."""

import json
from typing import Any

import pytest

from queue_core import imports
from queue_core.clock import DATABASE_CLOCK
from queue_core.contract.erase import erase
from queue_core.models import AuditEntry, ImportRefusal, ImportRun, Lane, Ticket
from queue_core.ticket_refused import names_in
from reviewboard.models import Person
from tests.factories import make_lane, waiting_job
from tests.imports.test_runs import settle, upload, work
from tests.locking import holding, started, wait_until_blocked
from tests.people.cast import person

ERASED = "The author asked for it."


@pytest.fixture
def lane(db: None) -> Lane:
    return make_lane(name="posts", cap=None)


@pytest.fixture
def leo(db: None) -> Person:
    return person("leo", "view_board", "import_tickets")


@pytest.fixture(autouse=True)
def _no_wakeups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("queue_core.wakeups._send", lambda *_args: None)


def refused(leo: Person, lane: Lane, content: str, name: str = "a.ndjson") -> ImportRun:
    """A run whose every line was refused, and kept."""
    return work(settle(upload(leo, content, name=name), leo, lane))


def line(ticket: Any, **fields: Any) -> str:
    return json.dumps(
        {"lane": "posts", "ticket": ticket, "revision": "v1", "evidence": "a secret", "severity": 9} | fields
    )


def kept() -> dict[int, bool]:
    return {one.line: one.raw is not None for one in ImportRefusal.objects.all()}


def ticket_of(lane: Lane, external_id: str) -> Ticket:
    return waiting_job(lane, source="forum", external_id=external_id).ticket


@pytest.mark.django_db
def test_the_refused_lines_of_an_erased_ticket_are_blanked_however_broken_and_no_others(lane, leo) -> None:
    lines = [
        line("t7"),
        line("t8"),
        line("t7", source="elsewhere"),
        line("\u0075ť7"),
        '{"ticket": "t7", "evidence": "a se',
    ]
    ticket, other = ticket_of(lane, "t7"), ticket_of(lane, "uť7")
    refused(leo, lane, "\n".join(lines))
    assert kept() == dict.fromkeys(range(1, 6), True)

    erase(ticket.pk, ground=ERASED, actor=None, clock=DATABASE_CLOCK)
    assert kept() == {1: False, 2: True, 3: True, 4: True, 5: False}
    erase(other.pk, ground=ERASED, actor=None, clock=DATABASE_CLOCK)

    assert kept()[4] is False
    entries = AuditEntry.objects.filter(act="ticket.erased").order_by("pk")
    assert [entry.after["refused_lines"] for entry in entries] == [2, 1]


@pytest.mark.django_db
def test_rows_of_csv_are_reached_and_what_is_refused_after_the_erasure_is_not_kept_at_all(lane, leo) -> None:
    ticket = ticket_of(lane, "t7")
    content = "ticket,revision,evidence,severity\nt7,v1,a secret,9\nt8,v1,a,9\nt7,v1,a secret\n"
    refused(leo, lane, content, "a.csv")

    erase(ticket.pk, ground=ERASED, actor=None, clock=DATABASE_CLOCK)
    assert kept() == {2: False, 3: True, 4: False}
    ImportRefusal.objects.all().delete()
    run = refused(leo, lane, content.replace("a secret\n", "a secret,9\n"), "a.csv")

    assert kept() == {2: False, 3: True, 4: False}
    assert b"secret" not in b"".join(imports.report(run, imports.format_of(run)))


@pytest.mark.django_db(transaction=True)
def test_a_line_that_is_kept_while_its_ticket_is_erased_waits_and_is_not_kept(lane, leo) -> None:
    ticket = ticket_of(lane, "t7")
    run = settle(upload(leo, line("t7"), name="a.ndjson"), leo, lane)
    with holding(lambda: erase(ticket.pk, ground=ERASED, actor=None, clock=DATABASE_CLOCK)):
        taking = started("taking", lambda: work(run))
        wait_until_blocked(taking)

    assert taking.outcome().state == "checked"
    assert kept() == {1: False}


@pytest.mark.parametrize(
    ("raw", "names"),
    [
        (b'{"ticket": "a", "source": "s"}', ("s", "a")),
        (b'{"ticket": 17}', (None, "17")),
        (b'{"ticket": "a", "source": 5}', (None, "a")),
        (b'{"ticket": "a", "ticket": "b"}', (None, None)),
        (b'{"ticket": "a", "t\\u0069cket": "b"}', (None, None)),
        (b'{"ticket": ["a"]}', (None, None)),
        (b'["ticket"]', (None, None)),
        (b"\xff", (None, None)),
    ],
)
def test_a_line_names_its_ticket_only_where_that_is_sure(raw, names) -> None:
    assert names_in(raw) == names

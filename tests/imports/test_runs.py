"""Uploaded files: kept in parts, tried dry, taken in by workers batch by batch, stopped, failed and forgotten."""

import io
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.db import IntegrityError, OperationalError, transaction

from queue_core import imports, tasks, wakeups
from queue_core.clock import DATABASE_CLOCK
from queue_core.errors import InvalidRequest, NotPermitted
from queue_core.imports import Acted, NewFile, Settings, uploading, working
from queue_core.imports.reading import StoredFile
from queue_core.models import (
    AuditEntry,
    Evidence,
    ImportForeseen,
    ImportPart,
    ImportRefusal,
    ImportRun,
    Job,
    Lane,
    LaneRole,
)
from reviewboard.models import Person
from tests.factories import make_lane
from tests.people.cast import person

pytestmark = pytest.mark.django_db

HEADER = "ticket,revision,evidence,deadline\r\n"


@pytest.fixture
def lane() -> Lane:
    return make_lane(name="posts", cap=None)


@pytest.fixture
def leo() -> Person:
    return person("leo", "view_board", "import_tickets")


@pytest.fixture(autouse=True)
def woken(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    sent: list[Any] = []
    monkeypatch.setattr("queue_core.wakeups._send", lambda task, *args: sent.append((task, args)))
    monkeypatch.setattr("queue_core.wakeups._is_due", lambda _key: True)
    return sent


def csv_of(count: int, *, bad: tuple[int, ...] = ()) -> str:
    rows = (f't{n},v1,"text ""{n}"",\r\nline 2",{"soon" if n in bad else "+1h"}\r\n' for n in range(count))
    return HEADER + "".join(rows)


def upload(leo: Person, content: str | bytes, *, name: str = "posts.csv", **fields: Any) -> ImportRun:
    raw = content.encode() if isinstance(content, str) else content
    new = NewFile(name, **({"source": "forum"} | fields))
    return imports.upload(io.BytesIO(raw), new, person=leo, clock=DATABASE_CLOCK)


def settle(run: ImportRun, leo: Person, lane: Lane | None, **fields: Any) -> ImportRun:
    imports.settle(run.pk, Settings("forum", lane, **fields), person=leo, clock=DATABASE_CLOCK)
    return ImportRun.objects.get(pk=run.pk)


def work(run: ImportRun, *, task: str = "w1", is_stopping: Callable[[], bool] = lambda: False) -> ImportRun:
    imports.work(run.pk, task=task, clock=DATABASE_CLOCK, is_stopping=is_stopping)
    return ImportRun.objects.get(pk=run.pk)


def checked(leo: Person, lane: Lane, content: str, **fields: Any) -> ImportRun:
    run = work(settle(upload(leo, content, **fields), leo, lane))
    assert run.state == "checked", run.fault
    return run


def begun(leo: Person, lane: Lane, content: str, **fields: Any) -> ImportRun:
    run = checked(leo, lane, content, **fields)
    imports.begin(run.pk, person=leo, clock=DATABASE_CLOCK)
    return run


def test_a_file_is_tried_dry_and_then_imported_and_its_parts_are_gone_at_the_end(lane, leo, monkeypatch, woken) -> None:
    monkeypatch.setattr(uploading, "PART", 1000)
    run = checked(leo, lane, csv_of(700, bad=(3, 600)))

    assert (Job.objects.count(), ImportRefusal.objects.count()) == (0, 2)
    assert ImportPart.objects.count() > 20
    assert {name: number for name, number in run.foretold.items() if number} == {"stored": 698, "refused": 2}
    assert imports.begin(run.pk, person=leo, clock=DATABASE_CLOCK).outcome == Acted.DONE
    run = work(run)

    assert (run.state, run.counts["stored"], run.counts["refused"]) == ("done", 698, 2)
    assert Job.objects.filter(lane=lane, ticket__source="forum").count() == 698
    assert [(one.line, one.field) for one in ImportRefusal.objects.order_by("line")] == [
        (8, "deadline"), (1202, "deadline"),
    ]  # fmt: skip
    assert not ImportPart.objects.exists()
    assert not ImportForeseen.objects.exists()
    acts = AuditEntry.objects.filter(subject_type="importrun").order_by("pk")
    assert list(acts.values_list("act", "actor_name")) == [
        ("import.uploaded", "leo"), ("import.checked", "leo"), ("import.begun", "leo"), ("import.ended", "system"),
    ]  # fmt: skip


def test_the_refused_rows_come_back_as_a_file_that_can_be_mended_also_when_the_parts_are_gone(lane, leo) -> None:
    run = work(begun(leo, lane, csv_of(3, bad=(1,))))

    report = b"".join(imports.report(run, imports.format_of(run))).decode()

    again = work(begun(leo, lane, report.replace("soon", "+2h"), name="report.csv"))
    assert (again.counts["stored"], again.counts["refused"]) == (1, 0)
    assert Evidence.objects.get(ticket__external_id="t1").body == '{"text":"text \\"1\\",\\r\\nline 2"}'


def test_a_worker_that_dies_leaves_the_run_where_its_last_batch_ended_imp_05(lane, leo, monkeypatch) -> None:
    """IMP-05: in the middle of a batch nothing of it is kept, neither tickets nor progress; nothing goes in twice."""
    run = begun(leo, lane, csv_of(1700, bad=(1650,)))
    kill_at_batch(monkeypatch, 3)

    with pytest.raises(SystemError):
        work(run, task="dies")
    run.refresh_from_db()
    assert (Job.objects.count(), run.counts["stored"], run.held_by) == (1000, 1000, "dies")
    assert work(run, task="too early").counts["stored"] == 1000
    ImportRun.objects.update(held_until=DATABASE_CLOCK.now())
    run = work(run, task="next")

    assert (run.state, run.counts["stored"], run.counts["refused"]) == ("done", 1699, 1)
    assert Job.objects.count() == 1699
    assert ImportRefusal.objects.get().line == 1650 * 2 + 2


def kill_at_batch(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    took, calls = working._Turn._move, []

    def move(self: Any, **fields: Any) -> None:
        calls.append(1)
        if len(calls) == number:
            raise SystemError("killed")
        took(self, **fields)

    monkeypatch.setattr(working._Turn, "_move", move)


def test_a_turn_ends_after_its_time_and_the_next_one_goes_on_dry_runs_too(lane, leo, woken) -> None:
    content = csv_of(600) + 't5,v2,other,\r\nt700,v1,"",\r\n'
    run = settle(upload(leo, content), leo, lane)

    woken.clear()
    run = work(run, is_stopping=lambda: True)
    assert (run.state, run.counts["stored"], run.held_by, run.line) == ("checking", 500, "", 1002)
    run = work(run)

    # That t5 has another revision is known from what the first worker foresaw.
    assert (run.foretold["stored"], run.foretold["revision_conflict"], run.foretold["refused"]) == (600, 1, 1)
    assert not Job.objects.exists()


def test_a_worker_that_was_taken_for_dead_commits_nothing_more(lane, leo, monkeypatch) -> None:
    run = begun(leo, lane, csv_of(10))
    held = working._Turn.take

    def slow(self: Any, batch: Any, *, place: int) -> None:
        ImportRun.objects.update(held_by="another")
        held(self, batch, place=place)

    monkeypatch.setattr(working._Turn, "take", slow)
    run = work(run)

    assert (run.state, run.counts, Job.objects.count()) == ("importing", {}, 0)


def test_a_batch_that_lost_a_deadlock_is_taken_again_and_counted_once(lane, leo, monkeypatch) -> None:
    run = begun(leo, lane, csv_of(10))
    moved, calls = working._Turn._move, []

    def deadlocked(self: Any, **fields: Any) -> None:
        calls.append(1)
        if len(calls) == 1:
            raise OperationalError("deadlock detected") from psycopg.errors.DeadlockDetected()
        moved(self, **fields)

    monkeypatch.setattr(working._Turn, "_move", deadlocked)
    run = work(run)

    assert (run.state, run.counts["stored"], Job.objects.count()) == ("done", 10, 10)


def test_an_import_is_stopped_at_once_and_what_went_in_stays(lane, leo) -> None:
    run = work(begun(leo, lane, csv_of(600)), is_stopping=lambda: True)

    assert imports.stop(run.pk, person=leo, clock=DATABASE_CLOCK).outcome == Acted.DONE
    run = work(run)

    assert (run.state, Job.objects.count(), ImportPart.objects.count()) == ("stopped", 500, 0)
    assert imports.stop(run.pk, person=leo, clock=DATABASE_CLOCK).outcome == Acted.NOT_NOW


def test_a_file_that_kills_its_workers_fails_and_is_taken_no_more(lane, leo, monkeypatch) -> None:
    run = begun(leo, lane, csv_of(3))
    monkeypatch.setattr(working._Turn, "take", lambda *_a, **_k: (_ for _ in ()).throw(SystemError("killed")))
    for _take in range(working.MOST_TAKES):
        with pytest.raises(SystemError):
            work(run)
        ImportRun.objects.update(held_until=DATABASE_CLOCK.now())

    run = work(run)

    assert run.state == "failed"
    assert "line 1" in run.fault


def test_the_tick_wakes_what_waits_and_forgets_what_nobody_needs(lane, leo, woken) -> None:
    waiting = begun(leo, lane, csv_of(2))
    left = upload(leo, csv_of(1))
    done = work(begun(leo, lane, csv_of(3, bad=(1,))))
    woken.clear()

    with transaction.atomic():
        imports.wake_waiting(clock=DATABASE_CLOCK)
        imports.forget_old(clock=DATABASE_CLOCK)
    assert ImportRefusal.objects.filter(run=done).count() == 1
    ImportRun.objects.filter(pk=left.pk).update(asked_at=DATABASE_CLOCK.now() - imports.LEFT_ALONE)
    later = working_clock(imports.KEPT_FOR + timedelta(seconds=1))
    imports.forget_old(clock=later)

    left.refresh_from_db()
    done.refresh_from_db()
    assert (left.state, done.is_emptied, ImportRefusal.objects.filter(run=done).count()) == ("discarded", True, 0)
    assert ImportRun.objects.get(pk=waiting.pk).state == "importing"


def working_clock(ahead: timedelta) -> Any:
    class Ahead:
        def now(self) -> Any:
            return DATABASE_CLOCK.now() + ahead

    return Ahead()


@pytest.mark.parametrize(
    ("content", "fields", "said"),
    [
        (b"", {}, "empty"),
        (b"\xef\xbb\xbf", {}, "empty"),
        (b"x" * 3001, {}, "larger than"),
        (b"x", {"encoding": "no-such"}, "no-such"),
    ],
)
def test_a_file_that_cannot_be_kept_is_refused_and_nothing_of_it_is_left(
    leo, monkeypatch, content, fields, said
) -> None:
    monkeypatch.setattr(uploading, "MOST_BYTES", 3000)
    monkeypatch.setattr(uploading, "PART", 1000)

    with pytest.raises(InvalidRequest, match=said):
        upload(leo, content, **fields)
    assert not ImportRun.objects.exists()


def test_a_person_keeps_few_files_at_once(leo) -> None:
    for _file in range(uploading.MOST_OPEN):
        upload(leo, HEADER)

    with pytest.raises(InvalidRequest, match="kept already"):
        upload(leo, HEADER)


def test_of_files_that_come_at_once_no_more_are_kept(leo, monkeypatch) -> None:
    """Each was let in before the others were kept: the count that binds is the one when the file is written."""
    for _file in range(uploading.MOST_OPEN):
        upload(leo, HEADER)
    look = uploading._check_open
    monkeypatch.setattr(uploading, "_check_open", lambda one, *, beside=0: look(one, beside=beside) if beside else None)

    with pytest.raises(InvalidRequest, match="kept already"):
        upload(leo, HEADER)
    assert ImportRun.objects.count() == uploading.MOST_OPEN


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [("a.csv", "{", "csv"), ("a.ndjson", "x", "ndjson"), ("a", ' {"a":1}', "ndjson"), ("C:\\a\\b.TSV", "x", "csv")],
)
def test_the_kind_is_told_by_the_name_else_by_the_first_character(leo, name, content, kind) -> None:
    run = upload(leo, content, name=name)

    assert (run.kind, "\\" in run.name) == (kind, False)


def test_a_file_of_another_encoding_is_kept_as_utf_8_and_read_anywhere(leo, monkeypatch) -> None:
    monkeypatch.setattr(uploading, "PART", 7)
    run = upload(leo, "é😀é".encode("utf-16"))

    assert run.encoding == "utf-16-le"
    assert StoredFile(run).read() == "é😀é".encode()
    stream = imports.reading.opened(run, 2)
    assert stream.read() == "😀é".encode()


def test_a_lane_in_which_one_may_not_import_does_not_exist(lane, leo) -> None:
    other = make_lane(name="other", cap=None)
    mia = person("mia", "view_board")
    group = lead_group()
    LaneRole.objects.create(person=mia, lane=lane, role=group)
    run = upload(mia, "lane,ticket,revision,evidence\nposts,t1,1,x\nother,t2,1,x\n")
    with pytest.raises(InvalidRequest, match="no such lane"):
        settle(run, mia, other)
    run = work(settle(run, mia, None))

    assert (run.foretold["stored"], run.foretold["refused"]) == (1, 1)
    assert ImportRefusal.objects.get().reason == "There is no such lane."


def test_a_ticket_in_a_lane_in_which_one_may_not_import_is_neither_replaced_nor_told_of(lane, leo) -> None:
    other, narrow = make_lane(name="images", cap=None), person("nia")
    LaneRole.objects.create(person=narrow, lane=lane, role=lead_group())
    theirs = '{"ticket":"t","revision":"hidden","evidence":"a"}\n'
    imports.begin(checked(leo, other, theirs, name="a.ndjson").pk, person=leo, clock=DATABASE_CLOCK)
    work(ImportRun.objects.get())
    tried = (
        '{"ticket":"t","revision":"2","evidence":"b","replaces":"hidden"}\n'
        '{"ticket":"t","revision":"2","evidence":"b"}\n'
        '{"ticket":"own","revision":"1","evidence":"b"}\n'
    )

    run = checked(narrow, lane, tried, name="b.ndjson")
    foretold = dict(run.foretold)
    imports.begin(run.pk, person=narrow, clock=DATABASE_CLOCK)
    run = work(run)

    assert (run.counts["refused"], run.counts["stored"]) == (2, 1)
    assert (foretold["refused"], foretold["stored"]) == (2, 1)
    assert not run.refusals.filter(reason__contains="hidden").exists()
    assert Job.objects.get(revision="hidden").lane == other
    assert not Job.objects.filter(revision="2").exists()


def lead_group() -> Any:
    from django.contrib.auth.models import Group

    return Group.objects.get(name="lead")


def test_who_may_not_import_does_none_of_it_and_nobody_settles_anothers_file(lane, leo) -> None:
    vera, ben = person("vera", "view_board"), person("ben", "import_tickets")
    run = upload(leo, HEADER)

    with pytest.raises(NotPermitted):
        upload(vera, HEADER)
    for act in (imports.begin, imports.change, imports.stop, imports.discard):
        with pytest.raises(NotPermitted):
            act(run.pk, person=vera, clock=DATABASE_CLOCK)
    with pytest.raises(NotPermitted):
        settle(run, ben, lane)
    assert imports.discard(run.pk, person=ben, clock=DATABASE_CLOCK).outcome == Acted.DONE


def test_what_wakes_a_worker_is_the_task_that_takes_a_file_in() -> None:
    assert tasks.take_in.name == wakeups.IMPORT


def test_a_mapping_that_does_not_fit_changes_nothing(lane, leo) -> None:
    run = upload(leo, "id,rev,body\n1,1,x\n")

    with pytest.raises(InvalidRequest, match="“id”"):
        settle(run, leo, lane)
    run = settle(run, leo, lane, mapping={"id": "ticket", "rev": "revision", "body": "evidence"})
    assert run.state == "checking"
    assert imports.change(run.pk, person=leo, clock=DATABASE_CLOCK).run.state == "uploaded"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.ndjson", '{"lane":"posts","ticket":"t","revision":"1","evidence":"x","restricted":true,"severity":9}'),
        (
            "a.ndjson",
            '{"lane":"posts","ticket":"t","revision":"1","evidence":"x","r\\u0065stricted":true,"severity":9}',
        ),
        ("a.csv", "ticket,revision,evidence,restricted,severity\nt,1,x,true,9\n"),
        ("a.csv", "ticket,revision,evidence,restricted\nt,1,x\n"),
    ],
)
def test_a_refused_line_about_restricted_evidence_is_kept_in_no_report(lane, leo, name, content) -> None:
    run = checked(leo, lane, content, name=name)

    assert ImportRefusal.objects.get().raw is None
    assert (
        b"x" not in b"".join(imports.report(run, imports.format_of(run))).replace(b"restricted,", b"").split(b"\n")[-1]
    )


def test_an_ended_run_stays_as_it_ended_whoever_asks(leo) -> None:
    run = upload(leo, HEADER)
    imports.discard(run.pk, person=leo, clock=DATABASE_CLOCK)

    for values in ({"state": "importing", "ended_at": None}, {"counts": {"stored": 9}}, {"place": 1}):
        with pytest.raises(IntegrityError, match="it has ended"), transaction.atomic():
            ImportRun.objects.filter(pk=run.pk).update(**values)
    assert ImportRun.objects.filter(pk=run.pk).update(is_emptied=True) == 1

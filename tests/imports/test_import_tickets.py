"""manage.py import_tickets: what goes in, what is refused and said, and what a second run adds."""

import io
import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from queue_core import contract
from queue_core.clock import DATABASE_CLOCK
from queue_core.models import Evidence, Job, Lane, Ticket
from tests.factories import make_connection, make_lane, without_guards

pytestmark = pytest.mark.django_db


@pytest.fixture
def lane() -> Lane:
    return make_lane(name="posts", cap=None)


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def write_file(*lines: dict[str, Any] | str | bytes, name: str = "tickets.ndjson") -> Path:
        path = tmp_path / name
        path.write_bytes(b"".join(_bytes(line) + b"\n" for line in lines))
        return path

    return write_file


def _bytes(line: dict[str, Any] | str | bytes) -> bytes:
    if isinstance(line, dict):
        line = json.dumps(line)
    return line.encode() if isinstance(line, str) else line


def ticket(number: int, **fields: Any) -> dict[str, Any]:
    return {"lane": "posts", "ticket": f"t{number}", "revision": "v1", "evidence": {"text": f"text {number}"}} | fields


class Ran:
    """One run of the command: its exit code, what it said, and the lines that did not go in."""

    def __init__(self, path: Path | str, report: Path | None = None, **options: Any) -> None:
        out, err = io.StringIO(), io.StringIO()
        self.code = 0
        try:
            call_command("import_tickets", str(path), stdout=out, stderr=err, report=report, **options)
        except SystemExit as end:
            self.code = int(end.code or 0)
        self.out, self.err = out.getvalue(), err.getvalue()
        lines = report.read_text().splitlines() if report and report.suffix != ".csv" else []
        self.report = [json.loads(line)["_refused"] for line in lines]


def test_the_lines_of_a_file_are_tickets_that_wait_in_their_lane(lane, write):
    ran = Ran(write(*map(ticket, range(1200))), source="forum")

    assert ran.code == 0
    assert "1200 stored, 0 known" in ran.out
    assert Job.objects.filter(lane=lane, state="WAITING").count() == 1200
    assert set(Ticket.objects.values_list("source", flat=True)) == {"forum"}


def test_the_wait_of_a_ticket_began_when_it_was_submitted(lane, write):
    Ran(write(ticket(1, submitted_at="-5h", deadline="+30m")))

    job = Job.objects.get()
    assert timedelta(hours=5) <= job.added_at - job.queued_at < timedelta(hours=5, seconds=5)
    assert timedelta(minutes=30) >= job.deadline - job.added_at > timedelta(minutes=29)


def test_evidence_is_stored_as_it_was_sent(lane, write):
    evidence = {"b": "é 😀 \u2028 <b>", "a": [1, 2.5, None, True, {"z": "\\\r\n"}]}

    Ran(write(ticket(1, evidence=evidence)))

    assert json.loads(Evidence.objects.get().body) == evidence
    assert list(json.loads(Evidence.objects.get().body)) == ["b", "a"]


def test_the_same_file_again_adds_nothing(lane, write):
    path = write(*map(ticket, range(700)))
    Ran(path)

    ran = Ran(path)

    assert ran.code == 0
    assert "0 stored, 700 known" in ran.out
    assert Job.objects.count() == 700


def test_a_file_whose_deadlines_are_over_by_now_is_still_known(lane, write):
    soon = DATABASE_CLOCK.now() + timedelta(seconds=1)
    path = write(ticket(1, deadline=soon.isoformat()), ticket(2))
    Ran(path)
    with without_guards():
        Job.objects.update(queued_at=soon - timedelta(hours=2), deadline=soon - timedelta(hours=1))
    contract.sweep(clock=DATABASE_CLOCK)
    late = write(ticket(1, deadline="2026-01-01T00:00:00Z"), ticket(2, deadline="-1h"))

    ran = Ran(late)

    assert (ran.code, "0 stored, 2 known" in ran.out) == (0, True)


def test_a_wrong_line_is_refused_with_number_field_and_reason_and_the_others_go_in(lane, write, tmp_path):
    path = write(
        ticket(1),
        ticket(2, lane="nowhere"),
        ticket(3, ticket=""),
        ticket(4, deadline="2020-01-01T00:00:00Z"),
        ticket(5, evidence={"text": "a\0b"}),
        "{not json",
        b'{"lane":"posts","evidence":"' + b"x" * 10_000_000 + b'"}',
        "",
        ticket(9),
    )

    ran = Ran(path, report=tmp_path / "report.ndjson")

    assert ran.code == 1
    assert "8 lines: 2 stored, 0 known, 0 superseded, 0 in conflict, 6 refused." in ran.out
    assert [(r["line"], r["field"]) for r in ran.report] == [
        (2, "lane"), (3, "ticket"), (4, "deadline"), (5, "evidence"), (6, ""), (7, ""),
    ]  # fmt: skip
    assert all(r["reason"] for r in ran.report)
    assert "Line 4, deadline:" in ran.err
    assert list(Ticket.objects.order_by("external_id").values_list("external_id", flat=True)) == ["t1", "t9"]
    assert Evidence.objects.count() == Job.objects.count() == 2


def test_a_part_that_failed_is_put_right_by_the_corrected_file(lane, write):
    """IMP-04"""
    bad = [ticket(n) for n in range(250)]
    bad[149] = ticket(149, deadline="tomorrow")
    path = write(*bad)

    assert "249 stored, 0 known, 0 superseded, 0 in conflict, 1 refused" in Ran(path).out
    assert "0 stored, 249 known, 0 superseded, 0 in conflict, 1 refused" in Ran(path).out
    assert "1 stored, 249 known" in Ran(write(*map(ticket, range(250)))).out


def test_deep_nesting_in_one_line_leaves_the_others_alone(lane, write, tmp_path):
    """IMP-09"""
    deep = '{"lane":"posts","ticket":"t5","revision":"v1","evidence":' + "[" * 20_000 + "]" * 20_000 + "}"

    ran = Ran(write(*map(ticket, range(4)), deep, *map(ticket, range(5, 10))), report=tmp_path / "r")

    assert [r["line"] for r in ran.report] == [5]
    assert Job.objects.count() == 9


def test_another_revision_is_a_conflict_that_changes_nothing(lane, write, tmp_path):
    """WHK-07"""
    ran = Ran(write(ticket(1, revision="v2"), ticket(1, revision="v1")), report=tmp_path / "r")

    assert ran.code == 1
    assert "1 stored, 0 known, 0 superseded, 1 in conflict, 0 refused" in ran.out
    assert [(r["line"], r["field"]) for r in ran.report] == [(2, "revision")]
    assert Ticket.objects.get().current_revision == "v2"


def test_a_line_that_names_what_it_replaces_supersedes_it(lane, write):
    path = write(ticket(1), ticket(1, revision="v2", replaces="v1"))

    ran = Ran(path)

    assert (ran.code, "2 stored" in ran.out) == (0, True)
    assert Ticket.objects.get().current_revision == "v2"
    assert {job.revision: job.state for job in Job.objects.all()} == {"v1": "DEAD", "v2": "WAITING"}

    assert "0 stored, 1 known, 1 superseded" in Ran(path).out


def test_a_replacement_of_what_is_not_current_is_a_conflict(lane, write):
    ran = Ran(write(ticket(1), ticket(1, revision="v3", replaces="v2"), ticket(2, revision="v2", replaces="v1")))

    assert "1 stored, 0 known, 0 superseded, 2 in conflict" in ran.out


def test_a_bad_first_line_takes_no_good_one_of_the_same_ticket_with_it(lane, write):
    ran = Ran(write(ticket(1, deadline="-1h"), ticket(1)))

    assert "1 stored, 0 known, 0 superseded, 0 in conflict, 1 refused" in ran.out


def test_lanes_are_made_when_asked_for_and_only_then(write):
    path = write(ticket(1), ticket(2, lane="Not A Name"), ticket(3, lane="more-posts"))

    assert "0 stored, 0 known, 0 superseded, 0 in conflict, 3 refused" in Ran(path).out
    assert not Lane.objects.exists()

    ran = Ran(path, create_lanes=True)

    assert "2 stored, 0 known, 0 superseded, 0 in conflict, 1 refused" in ran.out
    assert "Lane “posts” was made." in ran.out
    assert all(lane.is_on_hold for lane in Lane.objects.all())


def test_made_lanes_stand_on_the_connection_that_is_named(write):
    for name in ("first", "second"):
        make_connection(name=name, kind="local")
    path = write(ticket(1))

    with pytest.raises(CommandError, match="more than one"):
        Ran(path, create_lanes=True)
    with pytest.raises(CommandError, match="third"):
        Ran(path, create_lanes=True, connection="third")
    assert not Ticket.objects.exists()

    Ran(path, create_lanes=True, connection="second")
    assert Lane.objects.get().connection.name == "second"


def test_standard_input_is_read_as_a_file(lane, write, monkeypatch):
    with write(ticket(1)).open() as stream:
        monkeypatch.setattr("sys.stdin", stream)

        assert "1 stored" in Ran("-").out


def test_only_the_first_wrong_lines_are_printed_and_all_of_them_reported(lane, write, tmp_path):
    ran = Ran(write(*["x"] * 50), report=tmp_path / "report.ndjson")

    assert len(ran.report) == 50
    assert ran.err.count("Line ") == 20
    assert "30 more lines did not go in." in ran.err


def test_a_file_that_is_not_there_is_said(tmp_path):
    with pytest.raises(CommandError, match="cannot be read"):
        Ran(tmp_path / "none")


def test_the_report_never_overwrites_the_file_itself(lane, write):
    path = write(ticket(1))

    with pytest.raises(CommandError, match="overwrite"):
        Ran(path, report=path)
    assert path.read_bytes()


def test_severity_3_goes_to_people_at_once(lane, write):
    Ran(write(ticket(1, severity=3)))

    assert Job.objects.get().dead_reason == "pulled"
    assert Job.objects.get().items.get().kind == "urgent"


def test_a_dry_run_writes_nothing_and_counts_what_an_import_then_does(lane, write):
    """Also where lines of one file are about the same ticket, far enough apart to be in other batches."""
    Ran(write(ticket(0), ticket(1), ticket(1, revision="v2", replaces="v1"), name="before.ndjson"))
    path = write(
        ticket(0), ticket(0, revision="v9"), ticket(1), ticket(1, revision="v2"), ticket(2, deadline="-1h"), ticket(2),
        ticket(3), ticket(3, revision="v2", replaces="v1"), ticket(4, revision="v2", replaces="v1"), "x",
        *(ticket(n) for n in range(100, 700)), ticket(3), ticket(3, revision="v2"), ticket(3, revision="v3"),
        ticket(3, revision="v3", replaces="v2"), ticket(2), ticket(5, lane="nowhere"), ticket(6, ticket="a\0b"),
    )  # fmt: skip
    before = Ticket.objects.count(), Job.objects.count(), Evidence.objects.count()

    foretold = Ran(path, dry_run=True)

    assert before == (Ticket.objects.count(), Job.objects.count(), Evidence.objects.count())
    assert "nothing was written" in foretold.out
    ran = Ran(path)
    assert ran.out.splitlines()[0] == foretold.out.splitlines()[0]
    assert "604 stored, 4 known, 2 superseded, 3 in conflict, 4 refused" in ran.out
    assert (ran.err, ran.code) == (foretold.err, foretold.code)


def test_a_dry_run_makes_no_lane_and_says_which_it_would_make(write):
    ran = Ran(write(ticket(1)), create_lanes=True, dry_run=True)

    assert "Lane “posts” would be made." in ran.out
    assert "1 stored" in ran.out
    assert not Lane.objects.exists()


CSV = b'Post ID;rev;body;when\r\nt1;1;"a;b";+30m\r\nt2;1;=1+1;soon\r\nt3;;x;\r\n'
OPTIONS = {"map": ["Post ID=ticket", "rev=revision", "body=evidence", "when=deadline"], "lane": "posts"}


def test_a_csv_goes_in_by_its_mapping_and_its_refused_rows_are_mended_in_the_report_and_sent_again(lane, tmp_path):
    path, report = tmp_path / "posts.csv", tmp_path / "report.csv"
    path.write_bytes(CSV)

    ran = Ran(path, report=report, **OPTIONS)

    assert "1 stored, 0 known, 0 superseded, 0 in conflict, 2 refused" in ran.out
    text = report.read_text(encoding="utf-8-sig")
    assert [line.split(";")[:5] for line in text.splitlines()] == [
        ["Post ID", "rev", "body", "when", "_refused_line"],
        ["t2", "1", "'=1+1", "soon", "3"],
        ["t3", "", "x", "", "4"],
    ]
    report.write_text(text.replace("soon", "+1h").replace("t3;", "t3;1"), encoding="utf-8-sig")
    again = Ran(report, **OPTIONS)
    assert (again.code, "2 stored" in again.out) == (0, True)
    assert json.loads(Evidence.objects.get(ticket__external_id="t2").body) == {"text": "=1+1"}
    assert "0 stored, 1 known, 0 superseded, 0 in conflict, 2 refused" in Ran(path, **OPTIONS).out


def test_refused_lines_of_ndjson_are_mended_in_the_report_and_sent_again(lane, write, tmp_path):
    report = tmp_path / "report.ndjson"
    Ran(write(ticket(1, severity=9), ticket(2)), report=report)

    report.write_text(report.read_text().replace(": 9", ": 2"))

    assert "1 stored" in Ran(report).out
    assert Ticket.objects.get(external_id="t1").severity == 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"map": ["a"], "format": "csv"}, "THEIRS=OURS"),
        ({"map": ["a=ticket", "a=lane"], "format": "csv"}, "once for each column"),
        ({"map": ["Post ID=ticket"]}, "for CSV"),
        ({"format": "csv", "delimiter": ";;"}, "one ASCII character"),
        ({"format": "csv", "delimiter": '"'}, "one ASCII character"),
        ({"encoding": "no-such"}, "no-such"),
        ({"lane": "  "}, "--lane"),
    ],
)
def test_options_that_do_not_fit_are_said(options, said, tmp_path):
    path = tmp_path / "posts"
    path.write_bytes(CSV)

    with pytest.raises(CommandError, match=said):
        Ran(path, **options)


def test_lane_and_revision_of_lines_that_name_none_come_from_the_options(lane, write):
    Ran(write('{"ticket":"t1","evidence":1}'), lane="posts", revision="7")

    assert (Ticket.objects.get().current_revision, Job.objects.get().lane) == ("7", lane)

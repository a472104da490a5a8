"""Decisions, statements and counts in files: whole, by time and lane, and safe to open."""

import csv
import io
import json
import os
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from queue_core import people
from queue_core.errors import ConfigurationFault, InvalidRequest
from queue_core.exports import Column, Kind, Period, Table, decisions, files, reading, statements, transparency
from queue_core.exports.tables import WRITERS, write_csv, write_ndjson, write_parquet
from queue_core.models import Decision, Item, ReasonCode
from queue_core.spreadsheet import safe_cell
from tests.factories import T0, at, clock, dead_job, done_job, make_ground, make_lane
from tests.people.cast import REVIEWER, person, rita

pytestmark = pytest.mark.django_db
ALL = Period(T0, at(10**6))
HOSTILE = ["=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(1)", "\t=1", "\r=1", "\n=1", " =1", "＝1", "\ufeff=1"]


def run(command: str, *arguments: str) -> str:
    said = io.StringIO()
    call_command(command, *arguments, stderr=said, stdout=io.StringIO())
    return said.getvalue()


def exported(tmp_path: Path, command: str, *arguments: str) -> list[dict[str, Any]]:
    file = tmp_path / "out"
    run(command, *arguments, "-o", str(file))
    return [json.loads(line) for line in file.read_text().splitlines()]


class TestCells:
    @pytest.mark.parametrize("text", HOSTILE)
    def test_no_cell_begins_as_a_formula_does_exp_01(self, text) -> None:
        assert safe_cell(text).startswith("'")
        assert safe_cell(text).replace("'", "") == text.replace("'", "")

    @pytest.mark.parametrize(
        ("text", "safe"),
        [
            ("a;=1+1", "a;'=1+1"),
            ("a\t=1", "a\t'=1"),
            ('x\r\n"=1', "x\r\n\"'=1"),
            ("a; -2;b;＝3", "a; '-2;b;'＝3"),
            ("=1;=2", "'=1;'=2"),
            ("a;b=1", "a;b=1"),
            ("a, -1", "a, -1"),
        ],
    )
    def test_no_part_begins_as_one_where_another_countrys_spreadsheet_parts_cells_exp_01(self, text, safe) -> None:
        assert safe_cell(text) == safe

    @pytest.mark.parametrize("text", ["a=b", "t-1", "1+1", "", "a,b", "line\nline"])
    def test_other_texts_stay_as_they_are(self, text) -> None:
        assert safe_cell(text) == text

    def test_a_csv_reads_back_with_numbers_as_numbers_and_texts_whole_exp_01(self) -> None:
        table = Table(
            (Column("text"), Column("number", Kind.NUMBER), Column("flag", Kind.FLAG), Column("at", Kind.MOMENT))
        )
        out = io.BytesIO()

        count = write_csv(out, table, [[('a,"b"\r\nc', -5, True, T0), ("-5", None, False, None)]])

        assert out.getvalue().startswith(b"\xef\xbb\xbf")
        assert b",-5,true," in out.getvalue()
        rows = list(csv.reader(io.StringIO(out.getvalue().decode("utf-8-sig"), newline="")))
        assert rows[1] == ['a,"b"\r\nc', "-5", "true", T0.isoformat()]
        assert rows[2] == ["'-5", "", "false", ""]
        assert count == 2

    def test_ndjson_is_strict_json(self) -> None:
        with pytest.raises(ValueError, match="not JSON compliant"):
            write_ndjson(io.BytesIO(), Table((Column("x", Kind.FRACTION),)), [[(float("nan"),)]])


def test_every_format_holds_the_same_rows_and_parquet_their_types(tmp_path) -> None:
    try:
        import pyarrow.parquet as pa
    except ImportError:
        # In CI a test that is left out is one that proves nothing.
        (pytest.fail if os.environ.get("CI") else pytest.skip)("uv sync --extra parquet")
    lane = make_lane()
    for result in ("APPROVED", "REJECTED"):
        done_job(lane, result=result)

    for format_ in WRITERS:
        said = run("export_decisions", "--since", "2026-01-01", "--format", format_, "-o", str(tmp_path / format_))
        assert "2 decisions written." in said

    lines = [json.loads(line) for line in (tmp_path / "ndjson").read_text().splitlines()]
    with (tmp_path / "csv").open(encoding="utf-8-sig", newline="") as stream:
        cells = list(csv.DictReader(stream))
    table = pa.read_table(tmp_path / "parquet")
    assert [line["ticket"] for line in lines] == [row["ticket"] for row in cells] == table["ticket"].to_pylist()
    assert table["decision"].to_pylist() == [line["decision"] for line in lines]
    assert table["decided_at"].to_pylist()[0] == datetime.fromisoformat(lines[0]["decided_at"])
    assert str(table.schema.field("in_force").type) == "bool"


def test_without_pyarrow_the_fault_says_what_to_install(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)

    with pytest.raises(ConfigurationFault, match="uv sync --extra parquet"):
        write_parquet(io.BytesIO(), decisions.TABLE, [])


class TestDecisions:
    def test_a_row_says_what_was_decided_on_what_by_whom_and_under_what(self, tmp_path) -> None:
        lane = make_lane()
        job = done_job(lane, result="REJECTED", severity=2, category="posts")

        [row] = exported(tmp_path, "export_decisions", "--since", "2026-01-01T00:00:00Z")

        wanted = {
            "ticket": job.ticket.external_id, "lane": lane.name, "verdict": "REJECTED", "reason_code": "insult",
            "automation": "wholly", "decided_by": "model", "in_force": True, "policy_version": 1, "stage": 2,
            "severity": 2, "category": "posts", "why": "first", "replaces": None, "decided_at": at(2).isoformat(),
        }  # fmt: skip
        assert {name: row[name] for name in wanted} == wanted

    def test_the_beginning_is_in_it_and_the_end_is_not(self) -> None:
        lane = make_lane()
        for moment in (10, 20, 30):
            done_job(lane, completed=moment)

        [batch] = decisions.rows(Period(at(10), at(30)), lanes=[lane])

        assert [row[-1] for row in batch] == [at(10), at(20)]

    def test_decisions_of_one_instant_are_on_one_page_each_and_none_is_lost(self) -> None:
        lanes = [make_lane(), make_lane()]
        for lane in lanes:
            for _count in range(7):
                done_job(lane)

        read = [one.pk for batch in reading.batches(ALL, lanes=lanes, size=3) for one in batch]

        assert sorted(read) == list(Decision.objects.order_by("pk").values_list("pk", flat=True))
        assert len(set(read)) == 14

    def test_only_the_lanes_named_are_in_it_and_an_unknown_one_is_said(self, tmp_path) -> None:
        here, there = make_lane(), make_lane()
        done_job(here)
        done_job(there)

        [row] = exported(tmp_path, "export_decisions", "--lane", here.name)

        assert row["lane"] == here.name
        with pytest.raises(CommandError, match="--lane: There is no lane “nowhere”"):
            run("export_decisions", "--lane", "nowhere")

    def test_a_persons_note_is_in_it_unless_the_evidence_is_restricted_and_no_name_ever(self, tmp_path) -> None:
        lane, reviewer = make_lane(), person("sue", *REVIEWER, "view_restricted")
        for is_restricted in (False, True):
            job = dead_job(lane, is_restricted=is_restricted)
            item = Item.objects.get(job=job)
            token = people.take(item.pk, person=reviewer, clock=clock(20)).token
            assert token is not None
            people.resolve(
                token,
                person=reviewer,
                verdict="REJECTED",
                reason_code=make_ground().code,
                note="=HYPERLINK(1)",
                clock=clock(21),
            )

        rows = exported(tmp_path, "export_decisions")

        assert [row["note"] for row in rows] == ["=HYPERLINK(1)", ""]
        assert {row["decided_by"] for row in rows} == {"person"}
        assert "rita" not in json.dumps(rows)
        run("export_decisions", "--format", "csv", "-o", str(tmp_path / "csv"))
        assert "'=HYPERLINK(1)" in (tmp_path / "csv").read_text()

    @pytest.mark.parametrize(
        ("since", "until", "said"),
        [
            ("2026-01-01T10:00:00", "", "--since: .* has no zone"),
            ("yesterday", "", "--since: .* is no time"),
            ("2026-01-02", "2026-01-01", "--until: The end is not after the beginning"),
            ("0001-01-01T00:00:00Z", "", "--since: .* out of range"),
        ],
    )
    def test_a_time_that_is_none_is_refused_with_its_option(self, since, until, said) -> None:
        with pytest.raises(CommandError, match=said):
            run("export_decisions", "--since", since, "--until", until)

    def test_a_time_with_a_zone_is_that_instant(self) -> None:
        period = Period.read("2027-01-01T10:00:00+02:00", "2027-01-02", now=T0)

        assert period.since == datetime(2027, 1, 1, 8, tzinfo=UTC)
        assert period.until == datetime(2027, 1, 2, tzinfo=UTC)


class TestFiles:
    def test_an_export_that_fails_leaves_what_was_there_and_no_half_of_it(self, tmp_path) -> None:
        file = tmp_path / "out.csv"
        file.write_text("before")

        def fail() -> None:
            with files.opened(str(file)) as stream:
                stream.write(b"half")
                raise InvalidRequest("no")

        with pytest.raises(InvalidRequest):
            fail()

        assert [one.name for one in tmp_path.iterdir()] == ["out.csv"]
        assert file.read_text() == "before"

    def test_where_it_cannot_be_written_is_said(self, tmp_path) -> None:
        with pytest.raises(CommandError, match="cannot be written: No such file or directory"):
            run("export_decisions", "-o", str(tmp_path / "nowhere" / "out"))


class TestStatements:
    MAPPING = {
        "content_type": ["CONTENT_TYPE_TEXT"],
        "territorial_scope": ["DE", "FR"],
        "visibility": ["DECISION_VISIBILITY_CONTENT_REMOVED"],
    }

    def mapping(self, tmp_path: Path, **changed: Any) -> str:
        codes = {
            code: {"ground": "incompatible", "category": "STATEMENT_CATEGORY_ILLEGAL_OR_HARMFUL_SPEECH"}
            for code in ReasonCode.objects.filter(is_for_rejection=True).values_list("code", flat=True)
        }
        file = tmp_path / "mapping.json"
        file.write_text(json.dumps(self.MAPPING | {"reason_codes": codes} | changed))
        return str(file)

    def test_each_rejection_has_one_with_ground_facts_automation_and_redress(self, tmp_path) -> None:
        lane = make_lane()
        done_job(lane, result="REJECTED", source_kind="user_notice")
        done_job(lane, result="APPROVED")
        ReasonCode.objects.filter(code="insult").update(clause="Terms, 4.2", public_text="It insults a person.")

        [row] = exported(tmp_path, "export_statements", "--redress", "https://site.example/appeal")

        wanted = {
            "ground": "insult", "clause": "Terms, 4.2", "facts": "It insults a person.", "notice": "user_notice",
            "automated_detection": False, "automated_decision": "wholly", "decided_by": "model",
            "redress": "https://site.example/appeal", "restriction": "rejected", "in_force": True,
        }  # fmt: skip
        assert {name: row[name] for name in wanted} == wanted

    def test_the_eus_database_gets_it_in_its_words(self, tmp_path) -> None:
        done_job(make_lane(), result="REJECTED", source_kind="trusted_flagger")

        [row] = exported(tmp_path, "export_statements", "--eu", self.mapping(tmp_path))

        wanted = {
            "decision_visibility": ["DECISION_VISIBILITY_CONTENT_REMOVED"],
            "decision_ground": "DECISION_GROUND_INCOMPATIBLE_CONTENT",
            "illegal_content_legal_ground": None,
            "category": "STATEMENT_CATEGORY_ILLEGAL_OR_HARMFUL_SPEECH",
            "content_type": ["CONTENT_TYPE_TEXT"],
            "territorial_scope": ["DE", "FR"],
            "source_type": "SOURCE_TRUSTED_FLAGGER",
            "automated_detection": "No",
            "automated_decision": "AUTOMATED_DECISION_FULLY",
            "content_date": "2026-01-01",
            "application_date": "2026-01-01",
            "puid": f"reviewboard-{Decision.objects.get().pk}",
        }
        assert {name: row[name] for name in wanted} == wanted
        assert row["incompatible_content_ground"]

    @pytest.mark.parametrize(
        ("changed", "said"),
        [
            ({"reason_codes": {}}, "reason_codes is missing or wrong: an entry for .*insult"),
            ({"visibility": ["REMOVED"]}, "visibility is missing or wrong: DECISION_VISIBILITY_"),
            ({"content_type": "CONTENT_TYPE_TEXT"}, "content_type is missing or wrong"),
            ({"reason_codes": {"insult": {"ground": "rude"}}}, r"reason_codes\.insult\.ground"),
            ({"reason_codes": {"insult": {"ground": "illegal", "category": "x"}}}, r"reason_codes\.insult\.category"),
        ],
    )
    def test_a_mapping_that_is_not_whole_is_refused_before_a_line_is_written(self, tmp_path, changed, said) -> None:
        make_ground()
        out = tmp_path / "out"

        with pytest.raises(CommandError, match=said):
            run("export_statements", "--eu", self.mapping(tmp_path, **changed), "-o", str(out))

        assert not out.exists()

    def test_an_illegal_ground_names_its_law(self, tmp_path) -> None:
        done_job(make_lane(), result="REJECTED")
        ReasonCode.objects.filter(code="insult").update(clause="§ 185 StGB")
        mapping = json.loads(Path(self.mapping(tmp_path)).read_text())
        mapping["reason_codes"]["insult"]["ground"] = "illegal"

        [row] = exported(tmp_path, "export_statements", "--eu", self.mapping(tmp_path, **mapping))

        assert (row["decision_ground"], row["illegal_content_legal_ground"]) == (
            "DECISION_GROUND_ILLEGAL_CONTENT",
            "§ 185 StGB",
        )
        assert row["incompatible_content_ground"] is None


class TestTransparency:
    def test_decisions_are_counted_by_what_a_report_asks_for_with_their_median(self) -> None:
        lane = make_lane()
        for completed in (10, 20, 60):
            done_job(lane, completed=completed, category="posts", source_kind="user_notice")
        done_job(lane, result="REJECTED", completed=5)

        found = transparency.report(ALL, lanes=[lane])

        assert found["decisions"] == [
            {
                "source_kind": "own_detection", "category": None, "automation": "wholly", "verdict": "REJECTED",
                "count": 1, "median_seconds": 5.0,
            },
            {
                "source_kind": "user_notice", "category": "posts", "automation": "wholly", "verdict": "APPROVED",
                "count": 3, "median_seconds": 20.0,
            },
        ]  # fmt: skip
        assert found["first_decisions"] == {"count": 4, "median_seconds": 15.0}

    def test_what_has_no_sample_is_null_and_never_0(self) -> None:
        found = transparency.report(ALL, lanes=[make_lane()])

        assert found["samples"] == {"checked": 0, "wrong": 0, "error_rate": None}
        assert found["first_decisions"] == {"count": 0, "median_seconds": None}
        assert found["appeals"]["upheld"] == {"count": 0, "median_seconds": None}

    def test_an_appeal_counts_by_whether_it_changed_the_decision(self, tmp_path) -> None:
        lane, reviewer = make_lane(), rita()
        for verdict in ("REJECTED", "APPROVED", "APPROVED"):
            job = done_job(lane, result="REJECTED", completed=10)
            first = Decision.objects.get(job=job)
            item = Item.objects.create(
                job=job, ticket=job.ticket, lane=lane, kind="manual", cause="appeal", severity=1,
                deadline=at(999), opened_at=at(20), fence=1, taken_by=reviewer, taken_until=at(99),
            )  # fmt: skip
            assignment = item.assignments.create(
                person=reviewer, fence=1, key="00000000-0000-0000-0000-000000000001", taken_at=at(30), until=at(99)
            )
            Decision.objects.create(
                ticket=job.ticket, revision="v1", job=job, lane=lane, verdict=verdict, why="appeal", replaces=first,
                assignment=assignment, person=reviewer, reason_code=make_ground(), source_kind="appeal",
                automation="none", decided_at=first.decided_at + timedelta(seconds=40),
            )  # fmt: skip

        file = tmp_path / "report.json"
        run("export_transparency", "--lane", lane.name, "--since", "2026-01-01", "-o", str(file))

        found = json.loads(file.read_text())
        assert found["appeals"] == {
            "upheld": {"count": 1, "median_seconds": 40.0},
            "reversed": {"count": 2, "median_seconds": 40.0},
        }
        assert found["lanes"] == [lane.name]


def test_statements_read_no_evidence(django_assert_num_queries) -> None:
    lane = make_lane()
    for _count in range(3):
        done_job(lane, result="REJECTED")

    with django_assert_num_queries(1) as queries:
        list(statements.rows(ALL, lanes=[lane]))

    assert '"body"' not in queries[0]["sql"]

"""One line of bytes becomes a checked record, or one fault that names its field."""

import io
import json
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from queue_core.errors import InvalidJob
from queue_core.strict_json import MAX_NESTING
from queue_core.ticket_file import BOM, MAX_EVIDENCE, MAX_LINE, Line, lines, parse

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
GOOD = {"lane": "posts", "ticket": "t1", "revision": "v1", "evidence": {"text": "hello"}}


def line_of(**fields: Any) -> Line:
    return Line(1, json.dumps(GOOD | fields).encode())


def raw(text: str) -> Line:
    return Line(1, text.encode())


def fault_of(line: Line) -> InvalidJob:
    with pytest.raises(InvalidJob) as caught:
        parse(line, now=NOW)
    return caught.value


def deadline_of(text: str) -> datetime | None:
    return parse(line_of(deadline=text), now=NOW).deadline


def test_a_line_with_the_needed_fields_is_a_record_with_the_lanes_defaults():
    record = parse(line_of(), now=NOW)

    assert (record.lane, record.ticket, record.revision) == ("posts", "t1", "v1")
    assert record.evidence == {"text": "hello"}
    assert (record.deadline, record.submitted_at, record.severity, record.source) == (None, None, None, None)


def test_all_fields_are_taken_over():
    record = parse(
        line_of(
            source="shop",
            deadline="+30m",
            submitted_at="-90s",
            severity=3,
            category="threat",
            source_kind="trusted_flagger",
            exposure="live",
            deadline_kind="hard",
            restricted=True,
            replaces="v0",
        ),
        now=NOW,
    )

    assert record.deadline == NOW + timedelta(minutes=30)
    assert record.submitted_at == NOW - timedelta(seconds=90)
    assert (record.severity, record.category, record.exposure) == (3, "threat", "live")
    assert (record.source, record.source_kind, record.deadline_kind) == ("shop", "trusted_flagger", "hard")
    assert (record.is_restricted, record.replaces) == (True, "v0")


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("+24h", NOW + timedelta(hours=24)),
        ("+2d", NOW + timedelta(days=2)),
        ("-90s", NOW - timedelta(seconds=90)),
        ("2027-01-01T10:00:00+02:00", datetime(2027, 1, 1, 8, tzinfo=UTC)),
        ("2027-01-01T10:00:00Z", datetime(2027, 1, 1, 10, tzinfo=UTC)),
        ("2027-01-01 10:00Z", datetime(2027, 1, 1, 10, tzinfo=UTC)),
    ],
)
def test_a_time_with_a_zone_or_a_relative_one_is_an_instant_in_utc(text, moment):
    """IMP-15"""
    assert deadline_of(text) == moment


@pytest.mark.parametrize(
    "value",
    [
        "2027-01-01T10:00:00", "2027-01-01", "10:00", 1798794000, 1798794000000, 1798794000.5, "1798794000", "+5",
        "5m", "+5w", "+1.5h", "++5m", "+٣m", "NaN", "", [], {}, True, "+9999999999s", "0001-01-01T00:00:00+14:00",
        "1969-12-31T23:59:59Z", "2200-01-01T00:00:00Z", "+999999999d", "-999999999d", "2027-13-01T00:00:00Z",
        "20270101T100000Z", "2027-W01-1T10:00:00Z",
    ],
)  # fmt: skip
def test_a_time_without_a_zone_or_a_bare_number_is_refused(value):
    """IMP-15: naive times and seconds or milliseconds are refused, not taken for a year far off."""
    assert fault_of(line_of(deadline=value)).field == "deadline"


@pytest.mark.parametrize("field", ["lane", "ticket", "revision"])
@pytest.mark.parametrize("value", [None, "", 0, True, [], {}, 12345, "  ", "\t", "x" * 201])
def test_an_id_that_is_missing_blank_or_no_text_is_refused(field, value):
    """IMP-17: no id is made up, and the number 12345 is not the text "12345"."""
    assert fault_of(line_of(**{field: value})).field == field


@pytest.mark.parametrize("field", ["lane", "ticket", "revision", "evidence"])
def test_a_needed_field_that_is_left_out_is_refused(field):
    content = {name: value for name, value in GOOD.items() if name != field}

    assert fault_of(Line(1, json.dumps(content).encode())).field == field


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("severity", 4), ("severity", -1), ("severity", True), ("severity", 1.0), ("severity", "1"),
        ("source", ""), ("source", 7), ("source", "x" * 65), ("category", "x" * 65), ("category", 1),
        ("source_kind", "rumour"), ("source_kind", ["appeal"]), ("exposure", "open"), ("deadline_kind", 1),
        ("restricted", "yes"), ("restricted", 1), ("replaces", ""), ("replaces", 1),
    ],
)  # fmt: skip
def test_an_optional_field_out_of_its_limits_is_refused(field, value):
    assert fault_of(line_of(**{field: value})).field == field


def test_an_unknown_field_is_refused_by_its_name():
    assert fault_of(line_of(priority=1)).field == "priority"


def test_an_unknown_fields_name_cannot_write_to_the_terminal():
    fault = fault_of(raw('{"\\u001b[2J' + "x" * 500 + '": 1}'))

    assert "\x1b" not in fault.field
    assert len(fault.field) <= 64


@pytest.mark.parametrize("evidence", ['{"t":"a\\u0000b"}', '{"a\\u0000":1}', '["x",["\\u0000"]]'])
def test_a_nul_character_in_evidence_is_refused_and_named(evidence):
    """IMP-07"""
    assert fault_of(Line(1, _with_evidence(evidence))).field == "evidence"


@pytest.mark.parametrize("field", ["ticket", "revision", "category"])
def test_a_nul_character_in_a_field_is_refused_and_named(field):
    """IMP-07"""
    assert fault_of(line_of(**{field: "a\0b"})).field == field


def test_a_raw_nul_byte_is_refused():
    """IMP-07"""
    assert "NUL" in str(fault_of(Line(1, json.dumps(GOOD).encode().replace(b"hello", b"he\0llo"))))


def test_half_a_surrogate_pair_is_refused_and_a_whole_one_taken():
    assert fault_of(Line(1, _with_evidence('{"text":"\\ud83d"}'))).field == "evidence"
    assert parse(Line(1, _with_evidence('{"text":"\\ud83d\\ude00"}')), now=NOW).evidence == {"text": "😀"}


@pytest.mark.parametrize(
    "number", ["NaN", "Infinity", "-Infinity", "1e400", "-1e400", "9" * 41, "1" * 5000, "0." + "1" * 50]
)
def test_a_number_that_is_no_json_or_unbounded_is_refused(number):
    """IMP-08, IMP-12"""
    fault_of(Line(1, _with_evidence(f'{{"score":{number}}}')))


def test_numbers_within_the_bounds_are_kept_exactly():
    evidence = parse(Line(1, _with_evidence('{"a":-0,"b":9007199254740993,"c":1e-3}')), now=NOW).evidence

    assert evidence == {"a": 0, "b": 9007199254740993, "c": 0.001}


@pytest.mark.parametrize("depth", [MAX_NESTING + 1, 900, 20_000])
@pytest.mark.parametrize(("opens", "closes"), ["[]", ('{"a":', "}")])
def test_nesting_beyond_the_limit_is_refused(depth, opens, closes):
    """IMP-09"""
    fault_of(Line(1, _with_evidence(opens * depth + "1" + closes * depth)))


def test_nesting_up_to_the_limit_is_taken():
    text = "[" * MAX_NESTING + "]" * MAX_NESTING

    assert parse(Line(1, _with_evidence(text)), now=NOW).evidence is not None


def test_a_key_that_stands_twice_is_refused_by_its_name():
    assert fault_of(raw('{"lane":"a","lane":"b"}')).field == "lane"
    assert fault_of(Line(1, _with_evidence('{"x":{"y":1,"y":2}}'))).field == "y"


def test_a_line_of_a_hundred_thousand_keys_is_not_searched_once_for_each_of_them():
    """IMP-09: a line within the limit kept the import busy for minutes before it was refused."""
    keys = ",".join(f'"{number}":1' for number in range(80_000))
    began = time.process_time()

    fault = fault_of(raw(f'{{{keys},"79999":1}}'))

    assert (fault.field, time.process_time() - began < 5) == ("79999", True)


@pytest.mark.parametrize("text", ["[1]", '"x"', "1", "null", "{", '{"a":1}}', "not json", "{'a':1}", '{"a":1,}'])
def test_a_line_that_is_no_json_object_is_refused(text):
    fault_of(raw(text))


def test_a_line_that_is_not_utf_8_is_refused():
    assert "UTF-8" in str(fault_of(Line(1, b'{"lane":"\xff"}')))


def test_evidence_is_measured_as_it_is_stored():
    fits = {"text": "x" * (MAX_EVIDENCE - len('{"text":""}'))}

    assert parse(line_of(evidence=fits), now=NOW).evidence == fits
    assert fault_of(line_of(evidence={"text": fits["text"] + "x"})).field == "evidence"
    assert parse(line_of(evidence={"text": "é" * (MAX_EVIDENCE // 3)}), now=NOW)


def test_lines_are_numbered_from_one_with_blank_ones_counted_and_passed_over():
    found = list(lines(io.BytesIO(b"a\r\n\r\n  \nb\n\nc")))

    assert found == [Line(1, b"a"), Line(4, b"b"), Line(6, b"c")]


def test_a_byte_order_mark_before_the_first_line_is_not_part_of_it():
    """IMP-01"""
    found = list(lines(io.BytesIO(BOM + json.dumps(GOOD).encode() + b"\n")))

    assert parse(found[0], now=NOW).lane == "posts"


@pytest.mark.parametrize("size", [MAX_LINE + 1, MAX_LINE + 2, MAX_LINE + 3, 10 * MAX_LINE])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_a_line_that_is_too_long_is_named_and_the_next_one_read(size, end):
    """IMP-13"""
    found = list(lines(io.BytesIO(b"a\n" + b"x" * size + end + b"b\n")))

    assert found == [Line(1, b"a"), Line(2, None), Line(3, b"b")]
    assert "longer" in str(fault_of(found[1]))


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b""])
def test_a_line_at_the_limit_is_read(end):
    found = list(lines(io.BytesIO(b"x" * MAX_LINE + end)))

    assert found == [Line(1, b"x" * MAX_LINE)]


def test_a_line_that_is_too_long_is_never_held():
    class Endless(io.RawIOBase):
        """60 MB without a line's end, given out piece by piece."""

        def __init__(self) -> None:
            self.left = 60 * 1024 * 1024
            self.largest = 0

        def readline(self, size: int | None = -1, /) -> bytes:
            assert size is not None
            assert size > 0
            self.largest = max(self.largest, size)
            given = min(size, self.left)
            self.left -= given
            return b"x" * given

    stream = Endless()

    assert list(lines(stream)) == [Line(1, None)]  # type: ignore[arg-type]
    assert stream.largest <= MAX_LINE + 2


def _with_evidence(text: str) -> bytes:
    return b'{"lane":"posts","ticket":"t1","revision":"v1","evidence":' + text.encode() + b"}"

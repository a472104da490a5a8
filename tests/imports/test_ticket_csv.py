"""Rows of CSV: found by their quotes, read by their header, bounded, and written again as they came."""

import gzip
import io
import json
import time
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_core.errors import ConfigurationFault, InvalidJob
from queue_core.spreadsheet import DANGEROUS, PASSED_OVER
from queue_core.ticket_csv import Columns, columns_of, read_header, rows, with_guard, without_guard
from queue_core.ticket_encoding import as_utf8
from queue_core.ticket_fields import TicketRecord
from queue_core.ticket_file import MAX_EVIDENCE, MAX_LINE, Line
from queue_core.ticket_formats import Csv, Ndjson
from queue_core.ticket_refused import Refusal, ndjson_line

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
HEADER = b"ticket,revision,evidence,deadline\n"
POSTS = {"lane": "posts"}


def read(content: bytes, mapping: dict[str, str] | None = None, **options: Any) -> tuple[Columns, list[Line]]:
    stream, _encoding = as_utf8(io.BytesIO(content), options.pop("encoding", None))
    header = read_header(stream, options.pop("delimiter", None), list(mapping or {}))
    columns = columns_of(header, mapping or {}, options.pop("defaults", POSTS))
    return columns, list(rows(stream, header.delimiter, first=header.next_line))


def records(content: bytes, mapping: dict[str, str] | None = None, **options: Any) -> list[TicketRecord]:
    columns, found = read(content, mapping, **options)
    return [columns.parse(line, now=NOW) for line in found]


def fault_of(content: bytes, mapping: dict[str, str] | None = None, **options: Any) -> str:
    with pytest.raises(ConfigurationFault) as caught:
        read(content, mapping, **options)
    return str(caught.value)


def refusal_of(content: bytes, mapping: dict[str, str] | None = None) -> InvalidJob:
    with pytest.raises(InvalidJob) as caught:
        records(content, mapping)
    return caught.value


def test_a_row_is_a_ticket_by_its_header() -> None:
    content = (
        b"lane,ticket,revision,evidence,deadline,severity,restricted,category\r\nposts,t1,v1,hello,+30m,2,TRUE,\r\n"
    )

    [record] = records(content, defaults={})

    assert (record.lane, record.ticket, record.revision, record.evidence) == ("posts", "t1", "v1", {"text": "hello"})
    assert (record.severity, record.is_restricted, record.category) == (2, True, "")


@pytest.mark.parametrize(
    "mark", [b"\xef\xbb\xbf", "\ufeff".encode("utf-16-le"), "\ufeff".encode("utf-16-be"), "\ufeff".encode("utf-32-le")]
)
def test_a_byte_order_mark_tells_the_encoding_and_is_no_part_of_the_first_name_imp_01(mark: bytes) -> None:
    """IMP-01"""
    text = "ticket,revision,evidence,deadline\nt1,v1,é,\nt2,v1,é😀,\nt3,v1,x,\n"
    encoding = {3: "utf-8", 2: "utf-16-le" if mark[0] == 0xFF else "utf-16-be", 4: "utf-32-le"}[len(mark)]

    found = records(mark + text.encode(encoding))

    assert [record.ticket for record in found] == ["t1", "t2", "t3"]
    assert found[1].evidence == {"text": "é😀"}


def test_a_byte_order_mark_in_a_quoted_name_is_no_part_of_it_either_imp_01() -> None:
    """IMP-01"""
    assert records(b'"\xef\xbb\xbfticket",revision,evidence\nt1,v1,x\n')[0].ticket == "t1"


def test_line_ends_within_quotes_are_the_texts_own_and_lines_are_counted_as_editors_do_imp_02() -> None:
    """IMP-02"""
    text = b'line1\r\nline2, with ""quote"" and lone \r here'
    content = b'ticket,revision,evidence,deadline\r\nt1,v1,"%s",2027-01-01T00:00:00Z\r\nt2,v1,x,no time' % text

    columns, found = read(content)

    assert [line.number for line in found] == [2, 4]
    assert columns.parse(found[0], now=NOW).evidence == {"text": 'line1\r\nline2, with "quote" and lone \r here'}
    with pytest.raises(InvalidJob) as caught:
        columns.parse(found[1], now=NOW)
    assert caught.value.field == "deadline"


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("first", ["", "sep={}\r\n"])
def test_a_delimiter_is_told_by_the_header_or_by_what_excel_writes_above_it_imp_03(delimiter: str, first: str) -> None:
    """IMP-03"""
    lines = [
        f"t{n}{delimiter}v1{delimiter}a;b,c" if delimiter == "\t" else f"t{n}{delimiter}v1{delimiter}x"
        for n in (1, 2, 3)
    ]
    text = first.format(delimiter) + "\n".join([delimiter.join(["ticket", "revision", "evidence"]), *lines])

    columns, found = read(text.encode())

    assert [columns.parse(line, now=NOW).ticket for line in found] == ["t1", "t2", "t3"]
    assert found[0].number == (3 if first else 2)


def test_what_has_another_delimiter_is_refused_as_a_whole_and_no_ticket_is_an_entire_line_imp_03() -> None:
    """IMP-03"""
    assert "ticket~revision~evidence" in fault_of(b"ticket~revision~evidence\nt1~v1~x\n")
    assert records(b"ticket~revision~evidence\nt1~v1~x\n", delimiter="~")[0].ticket == "t1"


@pytest.mark.parametrize(
    ("header", "mapping", "said"),
    [
        (b"ticket,revision,evidence,when\n", {}, "“when”"),
        (b"ticket,evidence\n", {}, "“revision”"),
        (b"ticket,revision\n", {}, "“evidence”"),
        (b"ticket,revision,evidence,ticket\n", {}, "“ticket” twice"),
        (b"id,ticket,revision,evidence\n", {"id": "ticket"}, "mapped to “ticket”"),
        (b"ticket,revision,evidence,body\n", {"body": "evidence.text"}, "mapped to “evidence.text”"),
        (b"ticket,revision,evidence,\n", {}, "Column 4"),
        (b"ticket,revision,evidence\n", {"body": "evidence"}, "no column “body”"),
        (b"ticket,revision,body\n", {"body": "text"}, "no field “text”"),
        (b"ticket,revision,body\n", {"body": "evidence.a b"}, "no field “evidence.a b”"),
        (b"\n", {}, "no header"),
        (b"", {}, "no header"),
        (b'"ticket,revision,evidence\n', {}, "quotes of the header"),
        (b"ticket,revision,evidence\rt1,v1,x\r", {}, "CR alone"),
        (b"ticket,revision,evid\xffence\n", {}, "encoding"),
        (b",".join(b"c%d" % n for n in range(201)) + b"\n", {}, "more than 200"),
        (b"x" * 70_000 + b"\n", {}, "longer than"),
        (b"\x1b[31mticket\n", {}, "�[31mticket"),
    ],
)  # fmt: skip
def test_a_header_that_does_not_fit_is_said_by_name(header: bytes, mapping: dict[str, str], said: str) -> None:
    assert said in fault_of(header, mapping)


def test_a_lane_that_nothing_names_is_missing() -> None:
    assert "“lane”" in fault_of(HEADER, defaults={})


def test_columns_are_mapped_by_name_several_into_one_evidence_and_left_out_by_nothing() -> None:
    content = b"Post ID,title,body,notes,rev\nt1,Hi,There,secret,\n"
    mapping = {"Post ID": "ticket", "title": "evidence.title", "body": "evidence", "notes": "", "rev": "revision"}

    [record] = records(content, mapping, defaults=POSTS | {"revision": "1"})

    assert (record.ticket, record.revision) == ("t1", "1")
    assert record.evidence == {"title": "Hi", "text": "There"}


@pytest.mark.parametrize(
    ("row", "field"),
    [
        (b"t1,v1,x", ""),
        (b"t1,v1,x,,,y", ""),
        (b't1,v1,"x"y,', ""),
        (b't1,v1,"never closed,', ""),
        (b"t1,v1,\xff,", ""),
        (b"t1,v1,a\0b,", "evidence"),
        (b"t\x001,v1,a,", "ticket"),
        (b",v1,a,", "ticket"),
        (b"t1,v1,,", "evidence"),
        (b"t1,v1,a,2027-01-01", "deadline"),
        (b"t1,v1,a,1798794000", "deadline"),
        (b"t1,v1," + b"x" * (MAX_EVIDENCE + 1) + b",", "evidence"),
    ],
)
def test_a_row_that_is_broken_is_refused_with_its_field_imp_07(row: bytes, field: str) -> None:
    """IMP-07, IMP-15"""
    assert refusal_of(HEADER + row).field == field


def test_cells_beyond_the_header_that_are_empty_and_rows_of_nothing_are_passed_over() -> None:
    columns, found = read(HEADER + b",,,\n\nt1,v1,x,,,,\r\n , ,,\n")

    assert [(line.number, columns.parse(line, now=NOW).ticket) for line in found] == [(4, "t1")]


def test_severity_and_flags_are_read_as_what_they_mean_and_else_refused() -> None:
    head = b"ticket,revision,evidence,severity,restricted\n"

    assert records(head + b"t,v,x,3,false")[0].severity == 3
    assert refusal_of(head + b"t,v,x,high,").field == "severity"
    assert refusal_of(head + b"t,v,x,9,").field == "severity"
    assert refusal_of(head + b"t,v,x,,perhaps").field == "restricted"


@pytest.mark.parametrize("size", [MAX_LINE + 1, 3 * MAX_LINE])
@pytest.mark.parametrize("text", [b"x" * 16, b'""' * 8, b",\n" * 8, b'"",\r\n' * 3])
def test_a_row_that_is_too_long_is_named_and_the_next_one_read_imp_13(size: int, text: bytes) -> None:
    """IMP-13: wherever the pieces that it is read in happen to end."""
    long = b't1,v1,"' + (text * (size // len(text) + 1)) + b'",\n'

    columns, found = read(HEADER + long + b"t2,v1,x,\n")

    assert [(line.number, line.raw is None) for line in found] == [(2, True), (2 + long.count(b"\n"), False)]
    assert columns.parse(found[1], now=NOW).ticket == "t2"
    with pytest.raises(InvalidJob, match="longer"):
        columns.parse(found[0], now=NOW)


def test_a_row_of_a_hundred_thousand_lines_takes_no_longer_than_its_bytes() -> None:
    began = time.monotonic()

    columns, [row] = read(HEADER + b't1,v1,"' + b"\n" * 100_000 + b'",')

    assert len(columns.parse(row, now=NOW).evidence["text"]) == 100_000
    # A third of a second; line by line anew it would be an hour.
    assert time.monotonic() - began < 20


def test_another_encoding_is_read_by_its_name_and_what_is_none_of_it_refuses_its_row_alone() -> None:
    text = "ticket,revision,evidence\nt1,v1,für\n"

    assert records(text.encode("cp1252"), encoding="cp1252")[0].evidence == {"text": "für"}
    columns, found = read(text.encode("cp1252") + b"t2,v1,\x81\nt3,v1,x\n", encoding="cp1252")
    assert [columns.parse(found[place], now=NOW).ticket for place in (0, 2)] == ["t1", "t3"]
    with pytest.raises(InvalidJob, match="no text in the file's encoding"):
        columns.parse(found[1], now=NOW)


@pytest.mark.parametrize("name", ["no-such", "base64", "rot13", "hex", ""])
def test_what_is_no_encoding_of_text_is_said(name: str) -> None:
    with pytest.raises(ConfigurationFault):
        as_utf8(io.BytesIO(b""), name)


@pytest.mark.parametrize(
    ("raw", "encoding", "said"),
    [
        (gzip.compress(b"ticket,evidence"), None, "packed"),
        (b"PK\x03\x04\x14\x00", "cp1252", "workbook"),
        ("ticket".encode("utf-16-le"), None, "NUL"),
        (b"\x00t", None, "NUL"),
    ],
    ids=["gzip", "xlsx", "utf-16-without-a-mark", "nul"],
)
def test_a_file_that_is_no_text_is_refused_as_a_whole_and_said_imp_13(
    raw: bytes, encoding: str | None, said: str
) -> None:
    with pytest.raises(ConfigurationFault, match=said):
        as_utf8(io.BytesIO(raw), encoding)

    assert as_utf8(io.BytesIO("ticket".encode("utf-16")))[0].read() == b"ticket"
    assert as_utf8(io.BytesIO("ticket".encode("utf-16-le")), "utf-16-le")[0].read() == b"ticket"


def test_another_encoding_is_read_in_pieces_that_may_end_within_a_character() -> None:
    text = "ticket,revision,evidence\n" + "".join(f"t{n},v1,😀é\n" for n in range(40_000))

    found = records(text.encode("utf-16"))

    assert (len(found), found[-1].evidence) == (40_000, {"text": "😀é"})


CELLS = st.text(st.sampled_from("=+-@'\" \t\r\n\ufeff\xa0＝a1;,"), max_size=6)


@given(CELLS)
def test_a_guarded_cell_is_run_by_no_spreadsheet_and_read_back_as_it_was_exp_01(cell: str) -> None:
    """EXP-01"""
    assert not with_guard(cell).lstrip(PASSED_OVER).startswith(DANGEROUS)
    assert without_guard(with_guard(cell)) == cell


@given(st.lists(st.tuples(CELLS, CELLS.filter(bool)), min_size=1, max_size=5), st.sampled_from(",;\t|"))
def test_refused_rows_come_back_from_their_report_as_they_were(cells: list[tuple[str, str]], delimiter: str) -> None:
    quoted = [[f"t{n}", "v1", text, when] for n, (text, when) in enumerate(cells)]
    lines = [delimiter.join('"' + cell.replace('"', '""') + '"' for cell in row) for row in quoted]
    content = "\r\n".join([delimiter.join(["ticket", "revision", "evidence", "deadline"]), *lines]).encode()
    columns, found = read(content, delimiter=delimiter)
    format_ = Csv(columns)

    report = format_.report_head() + b"".join(
        format_.report_line(Refusal(line.number, "deadline", "=why", "refused", line.raw)) for line in found
    )

    again, rows_again = read(report)
    assert [again.cells(line)[:4] for line in rows_again] == [columns.cells(line) for line in found] == quoted
    once_more = Csv(again)
    assert once_more.report_head() == format_.report_head()


@pytest.mark.parametrize(
    "raw",
    [b'{"ticket":"t1","severity":9}', b'{"a":1,"a":2}', b"{}", b' {"x": [1, NaN]} ', b'{"_refused":{"line":1},"b":2}'],
)
def test_a_refused_object_is_its_own_text_and_the_reason_before_it(raw: bytes) -> None:
    line = ndjson_line(Refusal(7, "severity", "why", "refused", raw))

    content = json.loads(line)
    assert content.pop("_refused") == {"line": 7, "field": "severity", "reason": "why"}
    assert content == {k: v for k, v in json.loads(raw).items() if k != "_refused"} or b"NaN" in raw
    with pytest.raises(InvalidJob) as caught:
        Ndjson({}).parse(Line(1, line.strip()), now=NOW)
    assert caught.value.field != "_refused"


@pytest.mark.parametrize("raw", [b"{not json", b"\xff", b"[1]", b"[" * 20_000, None])
def test_of_what_is_no_object_the_reason_holds_the_text(raw: bytes | None) -> None:
    content = json.loads(ndjson_line(Refusal(7, "", "why", "refused", raw)))

    assert list(content) == ["_refused"]
    assert content["_refused"].get("text") == (raw.decode(errors="replace") if raw else None)

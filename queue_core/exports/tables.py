"""Rows of one shape, and what writes them: NDJSON, CSV that no spreadsheet takes for formulas, Parquet."""

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, BinaryIO

from django.utils.translation import gettext as _

from queue_core.errors import ConfigurationFault
from queue_core.spreadsheet import safe_cell

type Cell = str | int | float | bool | datetime | list[str] | None
type Row = Sequence[Cell]
type Writer = Callable[[BinaryIO, "Table", Iterable[Sequence[Row]]], int]


class Kind(StrEnum):
    TEXT = "text"
    NUMBER = "number"
    FRACTION = "fraction"
    FLAG = "flag"
    MOMENT = "moment"
    TEXTS = "texts"


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    kind: Kind = Kind.TEXT


@dataclass(frozen=True, slots=True)
class Table:
    columns: tuple[Column, ...]

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]


def write_ndjson(out: BinaryIO, table: Table, batches: Iterable[Sequence[Row]]) -> int:
    """One JSON object a line. Returns how many."""
    count = 0
    for batch in batches:
        for row in batch:
            values: Mapping[str, Any] = dict(zip(table.names, map(_json_cell, row), strict=True))
            out.write(json.dumps(values, ensure_ascii=False, allow_nan=False).encode() + b"\n")
        count += len(batch)
    return count


def write_csv(out: BinaryIO, table: Table, batches: Iterable[Sequence[Row]]) -> int:
    """RFC 4180 with a byte-order mark, by which Excel knows UTF-8. Numbers stay numbers; texts are made safe."""
    text = io.TextIOWrapper(out, encoding="utf-8-sig", newline="", write_through=True)
    try:
        writer = csv.writer(text, lineterminator="\r\n")
        writer.writerow(table.names)
        count = 0
        for batch in batches:
            writer.writerows([_csv_cell(cell) for cell in row] for row in batch)
            count += len(batch)
        return count
    finally:
        # The caller's stream stays open: whoever opened it closes it.
        text.detach()


def write_parquet(out: BinaryIO, table: Table, batches: Iterable[Sequence[Row]]) -> int:
    """One row group a batch. Raises ConfigurationFault where pyarrow is not installed."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise ConfigurationFault(_("Parquet needs pyarrow: uv sync --extra parquet.")) from error
    types = {
        Kind.TEXT: pa.string(),
        Kind.NUMBER: pa.int64(),
        Kind.FRACTION: pa.float64(),
        Kind.FLAG: pa.bool_(),
        Kind.MOMENT: pa.timestamp("us", tz="UTC"),
        Kind.TEXTS: pa.list_(pa.string()),
    }
    schema = pa.schema([(column.name, types[column.kind]) for column in table.columns])
    count = 0
    with pq.ParquetWriter(out, schema) as writer:
        for batch in batches:
            columns = list(zip(*batch, strict=True)) or [() for _column in table.columns]
            arrays = [pa.array(list(values), field.type) for values, field in zip(columns, schema, strict=True)]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
            count += len(batch)
    return count


WRITERS: dict[str, Writer] = {"ndjson": write_ndjson, "csv": write_csv, "parquet": write_parquet}


def _json_cell(cell: Cell) -> Any:
    return cell.isoformat() if isinstance(cell, datetime) else cell


def _csv_cell(cell: Cell) -> Any:
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, datetime):
        return cell.isoformat()
    if isinstance(cell, list):
        return safe_cell(" ".join(cell))
    return safe_cell(cell) if isinstance(cell, str) else cell

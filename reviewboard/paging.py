"""Keyset paging: a page begins after a row, not after a number of rows, so that what is added meanwhile shifts nothing.

The cursor holds the order, the filter and the direction that it was made for, and is signed. One that was made for
another list, or by somebody else, is page 1 with a notice.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.core import signing
from django.db import OperationalError, connection, transaction
from django.db.models import Model, Q, QuerySet
from django.utils.translation import gettext as _

from reviewboard.shapes import Pager

SALT = "reviewboard.paging"
FORWARD, BACKWARD = "f", "b"
#: A list that takes longer says so, instead of standing in the way of claims.
TIME_LIMIT = "3s"
#: PostgreSQL's query_canceled.
CANCELLED = "57014"


@dataclass(frozen=True, slots=True)
class Order:
    """A total order by fields, "-" for falling; the last one is unique."""

    name: str
    keys: tuple[str, ...]

    @property
    def fields(self) -> tuple[str, ...]:
        return tuple(key.removeprefix("-") for key in self.keys)

    def reversed(self) -> tuple[str, ...]:
        return tuple(key[1:] if key.startswith("-") else f"-{key}" for key in self.keys)


@dataclass(frozen=True, slots=True)
class Page[M: Model]:
    """Rows, and the cursors of the pages before and after; empty where there is none."""

    rows: Sequence[M]
    previous: str = ""
    next: str = ""
    is_foreign: bool = False

    @property
    def is_first(self) -> bool:
        return not self.previous


def read_page[M: Model](rows: QuerySet[M], order: Order, *, cursor: str, filter_hash: str, size: int = 50) -> Page[M]:
    """The page that `cursor` names; the first one without a cursor, or with one that is not of this list."""
    place = _read(cursor, order, filter_hash)
    page = _first(rows, order, filter_hash, size) if place is None else _at(place, rows, order, filter_hash, size)
    if page is None:
        page = _first(rows, order, filter_hash, size)
    return Page(page.rows, page.previous, page.next, is_foreign=bool(cursor) and place is None)


def read_in_time[T](read: Callable[[], T]) -> T | None:
    """What `read` reads within TIME_LIMIT. None if it took longer: the page says that, and shows no list."""
    try:
        with transaction.atomic(), connection.cursor() as statement:
            statement.execute("SELECT set_config('statement_timeout', %s, true)", [TIME_LIMIT])
            return read()
    except OperationalError as error:
        if getattr(error.__cause__, "sqlstate", None) != CANCELLED:
            raise
        return None


def pager_of(page: Page[Any], address: Callable[[str], str]) -> Pager:
    """The links of a page to the ones beside it. `address` makes a cursor's address."""
    return Pager(
        previous_url=address(page.previous) if page.previous else "",
        next_url=address(page.next) if page.next else "",
        notice=_("That page belonged to another list. This is the first page.") if page.is_foreign else "",
    )


type _Place = tuple[str, list[Any]]


def _read(cursor: str, order: Order, filter_hash: str) -> _Place | None:
    if not cursor:
        return None
    try:
        name, made_for, direction, values = signing.loads(cursor, salt=SALT)
        if (name, made_for) != (order.name, filter_hash) or direction not in (FORWARD, BACKWARD):
            return None
        return direction, [_rich(value) for _field, value in zip(order.fields, values, strict=True)]
    except (signing.BadSignature, ValueError, TypeError):
        return None


def _first[M: Model](rows: QuerySet[M], order: Order, filter_hash: str, size: int) -> Page[M]:
    found = list(rows.order_by(*order.keys)[: size + 1])
    shown = found[:size]
    return Page(shown, next=_cursor(order, filter_hash, FORWARD, shown[-1]) if len(found) > size else "")


def _at[M: Model](place: _Place, rows: QuerySet[M], order: Order, filter_hash: str, size: int) -> Page[M] | None:
    direction, values = place
    keys = order.keys if direction == FORWARD else order.reversed()
    found = list(rows.filter(_beyond(keys, values)).order_by(*keys)[: size + 1])
    shown = found[:size]
    if direction == BACKWARD:
        if len(found) <= size:
            return None
        shown.reverse()
    more = len(found) > size or direction == BACKWARD
    if not shown:
        return None
    return Page(
        shown,
        previous=_cursor(order, filter_hash, BACKWARD, shown[0]),
        next=_cursor(order, filter_hash, FORWARD, shown[-1]) if more else "",
    )


def _beyond(keys: Sequence[str], values: Sequence[Any]) -> Q:
    """Rows after these values: the first key is beyond, or it is equal and the rest is beyond."""
    key, value = keys[0], values[0]
    name = key.removeprefix("-")
    beyond = Q(**{f"{name}__{'lt' if key.startswith('-') else 'gt'}": value})
    if len(keys) == 1:
        return beyond
    return beyond | (Q(**{name: value}) & _beyond(keys[1:], values[1:]))


def _cursor(order: Order, filter_hash: str, direction: str, row: Model) -> str:
    values = [_plain(getattr(row, field)) for field in order.fields]
    return signing.dumps([order.name, filter_hash, direction, values], salt=SALT)


def _plain(value: Any) -> Any:
    return {"at": value.isoformat()} if isinstance(value, datetime) else value


def _rich(value: Any) -> Any:
    return datetime.fromisoformat(value["at"]) if isinstance(value, dict) else value

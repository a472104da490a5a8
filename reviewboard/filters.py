"""What a list is filtered by: parameters in, a query and links out. What is no value of a filter is left out of a list,
which shows so. An act on all that a filter finds asks `takes_all` first, and so does a file of it.
"""

import hashlib
from collections.abc import Collection
from dataclasses import dataclass, fields, replace
from datetime import date
from typing import Self
from urllib.parse import urlencode

from django.http import QueryDict

from queue_core.models.tickets import MAX_ID
from queue_core.states import BulkOutcome, DeliveryState, ItemKind, JobState, MessageKind

CURSOR = "page"
#: Of a user name.
MOST_NAME = 150


def page_address(cursor: str) -> str:
    """The address of a page of a list that has no filter, from its own page."""
    return f"?{urlencode({CURSOR: cursor})}"


@dataclass(frozen=True, slots=True)
class _Filter:
    """Empty text means that a filter is not set."""

    @property
    def is_set(self) -> bool:
        return bool(self.query())

    @property
    def hash(self) -> str:
        return hashlib.sha256(self.query().encode()).hexdigest()[:12]

    def takes_all(self, query: QueryDict) -> bool:
        """Whether each value that was sent is one of this filter. Without one that is gone, as the name of a lane or an
        endpoint that was renamed meanwhile, it finds more than its reader saw."""
        return all(getattr(self, field.name) or not query.get(field.name, "").strip() for field in fields(self))

    def query(self, **changed: str) -> str:
        """The query string of this filter, or of one that differs in `changed`. The page is not part of it."""
        values = {field.name: getattr(self, field.name) for field in fields(self)} | changed
        return urlencode({name: value for name, value in values.items() if value})

    def url(self, path: str, *, cursor: str = "", **changed: str) -> str:
        query = "&".join(
            part for part in (self.query(**changed), urlencode({CURSOR: cursor}) if cursor else "") if part
        )
        return f"{path}?{query}" if query else path


@dataclass(frozen=True, slots=True)
class JobsFilter(_Filter):
    """Jobs by lane, state and layer, or by a ticket's exact id. `is_impossible`: no stored id can be like that."""

    lane: str = ""
    state: str = ""
    layer: str = ""
    ticket: str = ""

    @classmethod
    def read(cls, query: QueryDict, *, lanes: Collection[str], layers: Collection[str]) -> Self:
        return cls(
            lane=_one_of(query.get("lane", ""), lanes),
            state=_one_of(query.get("state", ""), JobState.values),
            layer=_one_of(query.get("layer", ""), layers),
            ticket=query.get("ticket", ""),
        )

    @property
    def is_impossible(self) -> bool:
        return not _is_storable(self.ticket, MAX_ID)


@dataclass(frozen=True, slots=True)
class ItemsFilter(_Filter):
    """Items by lane, or one group of them: a lane, a kind and a cause."""

    lane: str = ""
    kind: str = ""
    cause: str = ""

    @classmethod
    def read(cls, query: QueryDict, *, lanes: Collection[str]) -> Self:
        cause = query.get("cause", "")
        found = cls(
            lane=_one_of(query.get("lane", ""), lanes),
            kind=_one_of(query.get("kind", ""), ItemKind.values),
            cause=cause if cause.isascii() and cause.replace("_", "").isalnum() and len(cause) <= 40 else "",
        )
        return found if found.kind else replace(found, cause="")


@dataclass(frozen=True, slots=True)
class BulkFilter(_Filter):
    """The entries of a bulk act by what became of them."""

    outcome: str = ""

    @classmethod
    def read(cls, query: QueryDict) -> Self:
        return cls(outcome=_one_of(query.get("outcome", ""), [*BulkOutcome.values, "pending"]))


@dataclass(frozen=True, slots=True)
class DeliveriesFilter(_Filter):
    """Deliveries by endpoint, state and kind of message, or by a ticket's exact id."""

    endpoint: str = ""
    state: str = ""
    kind: str = ""
    ticket: str = ""

    @classmethod
    def read(cls, query: QueryDict, *, endpoints: Collection[str]) -> Self:
        return cls(
            endpoint=_one_of(query.get("endpoint", ""), endpoints),
            state=_one_of(query.get("state", ""), DeliveryState.values),
            kind=_one_of(query.get("kind", ""), MessageKind.values),
            ticket=query.get("ticket", ""),
        )

    @property
    def is_impossible(self) -> bool:
        return not _is_storable(self.ticket, MAX_ID)


@dataclass(frozen=True, slots=True)
class AuditFilter(_Filter):
    """Acts by lane, person, kind and days, both ends within. `is_impossible`: nobody can have such a name."""

    lane: str = ""
    who: str = ""
    act: str = ""
    since: str = ""
    until: str = ""

    @classmethod
    def read(cls, query: QueryDict, *, lanes: Collection[str], acts: Collection[str]) -> Self:
        return cls(
            lane=_one_of(query.get("lane", ""), lanes),
            who=query.get("who", "").strip(),
            act=_one_of(query.get("act", ""), acts),
            since=_day(query.get("since", "")),
            until=_day(query.get("until", "")),
        )

    @property
    def is_impossible(self) -> bool:
        return not _is_storable(self.who, MOST_NAME)


def _day(text: str) -> str:
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        return ""


def _one_of(value: str, known: Collection[str]) -> str:
    return value if value in known else ""


def _is_storable(text: str, most: int) -> bool:
    """Half a surrogate pair, which a browser's escapes may make, is no text of any database."""
    return len(text) <= most and "\0" not in text and not any("\ud800" <= character <= "\udfff" for character in text)

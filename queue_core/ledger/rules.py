"""What a rule is, and all of them by the table whose rows they judge."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from django.db import connection, models
from django.utils.functional import Promise

#: Keys of rows in, keys of those that break the rule out.
type Look = Callable[[Sequence[int]], set[int]]


@dataclass(frozen=True, slots=True)
class Rule:
    """One thing that is true of every row of a table in every state of the database that was ever committed.

    `says` is what is wrong where it is not. A look must find its rows by key or index: it is asked for a few thousand
    keys at a time, on tables of millions.
    """

    code: str
    model: type[models.Model]
    says: str | Promise
    look: Look


def in_sql(statement: str, **params: Any) -> Look:
    """A look that is one statement with `%(ids)s`, so that everything it compares is of one moment."""

    def look(ids: Sequence[int]) -> set[int]:
        with connection.cursor() as cursor:
            cursor.execute(statement, params | {"ids": list(ids)})
            return {row[0] for row in cursor.fetchall()}

    return look


def rules() -> tuple[Rule, ...]:
    """All rules, tables in the order in which they are read: what is pointed at before what points."""
    from queue_core.ledger import decisions, deliveries, figures, intake, items, jobs, lanes, links

    found = (lanes.RULES, intake.RULES, jobs.RULES, decisions.RULES, deliveries.RULES, items.RULES, figures.RULES)
    return (*chain.from_iterable(found), *links.rules())

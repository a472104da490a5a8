"""What a rule is, and all of them by the table whose rows they judge."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from django.db import connection, models
from django.utils.functional import Promise

from queue_core.models import BulkAct, ImportRun, Recall

#: Keys of rows in, keys of those that break the rule out.
type Look = Callable[[Sequence[int]], set[int]]

#: Rows that may have a hundred thousand of their own are looked at a few at a time: an audit's transactions are short.
FEW: dict[type[models.Model], int] = {BulkAct: 20, ImportRun: 20, Recall: 20}


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


@dataclass(frozen=True, slots=True, eq=False)
class InSql:
    """A look that is one statement with `%(ids)s`, so that everything it compares is of one moment.

    Where a question about few rows stands under an OR, `OFFSET 0` has PostgreSQL ask it for each row, by index: else it
    may answer all at once, and read a whole table for it.
    """

    statement: str
    params: Mapping[str, Any]

    def __call__(self, ids: Sequence[int]) -> set[int]:
        with connection.cursor() as cursor:
            cursor.execute(self.statement, {**self.params, "ids": list(ids)})
            return {row[0] for row in cursor.fetchall()}


def in_force(row: str) -> str:
    """A condition on a row with `ticket_id` and `revision`: a decision about that revision is in force.

    Found through the revision's jobs, for which decisions have an index, and asked of one row at a time.
    """
    return f"""EXISTS (
    SELECT FROM queue_core_job r CROSS JOIN LATERAL (
      SELECT FROM queue_core_decision d WHERE d.job_id = r.id AND d.verdict IS NOT NULL
        AND NOT EXISTS (SELECT FROM queue_core_decision n WHERE n.replaces_id = d.id OFFSET 0) OFFSET 0) d
    WHERE r.ticket_id = {row}.ticket_id AND r.revision = {row}.revision OFFSET 0)"""  # noqa: S608  (names of ours)


def in_sql(statement: str, **params: Any) -> InSql:
    return InSql(statement, params)


def rules() -> tuple[Rule, ...]:
    """All rules, tables in the order in which they are read: what is pointed at before what points."""
    from queue_core.ledger import (
        bulk,
        decisions,
        deliveries,
        figures,
        imports,
        intake,
        items,
        jobs,
        kept,
        lanes,
        links,
        looks,
        recalls,
    )

    parts = (lanes, intake, jobs, decisions, deliveries, items, looks, recalls, bulk, kept, imports, figures)
    return (*chain.from_iterable(part.RULES for part in parts), *links.rules())

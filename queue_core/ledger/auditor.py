"""The walk over the ledger: a bounded number of rows at a time, each in a short transaction that sees one moment."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from django.db import connection, models, transaction
from django.db.models import Max

from queue_core.ledger import set_backs
from queue_core.ledger.rules import FEW, Rule, rules
from queue_core.ledger.sums import Sums
from queue_core.models import Evidence

CHUNK = 2000
MOST_LISTED = 200


@dataclass(frozen=True, slots=True)
class Finding:
    """One row that breaks one rule."""

    rule: Rule
    key: int


@dataclass(frozen=True, slots=True)
class Step:
    """How far the walk is in one table. `share` is by keys, so it is exact only where none are missing."""

    model: type[models.Model]
    rows: int
    share: float

    @property
    def is_last(self) -> bool:
        return self.share >= 1.0


@dataclass(slots=True)
class Report:
    """All that was wrong, counted by rule; the first findings one by one."""

    most_listed: int = MOST_LISTED
    findings: list[Finding] = field(default_factory=list)
    totals: Counter[str] = field(default_factory=Counter)
    rows: int = 0
    sums: Sums = field(default_factory=Sums)

    @property
    def is_clean(self) -> bool:
        return not self.totals

    def add(self, found: Sequence[Finding]) -> None:
        self.totals.update(one.rule.code for one in found)
        self.findings += found[: max(self.most_listed - len(self.findings), 0)]


def audit(
    *, chunk: int = CHUNK, most_listed: int = MOST_LISTED, on_step: Callable[[Step], None] | None = None
) -> Report:
    """Read every row that was there at the start, and judge it by every rule of its table."""
    report = Report(most_listed)
    for model, of_model in _by_model(rules()).items():
        step = None
        for step in _walk(model, of_model, report, min(chunk, FEW.get(model, chunk))):
            if on_step is not None:
                on_step(step)
        report.rows += step.rows if step is not None else 0
    return report


def confirmed(suspects: Sequence[Finding]) -> list[Finding]:
    """What is still wrong a moment later. Rows move under the walk, and nothing is reported that has moved on.

    Nor is what a set-back of the clock that is on record left out of order.
    """
    found: list[Finding] = []
    for rule in dict.fromkeys(one.rule for one in suspects):
        with _one_moment():
            still = rule.look([one.key for one in suspects if one.rule is rule])
            if still and rule.code in set_backs.OF_TIMES:
                still -= set_backs.rows_within(rule.model, still, set_backs.spans())
        found += [Finding(rule, key) for key in sorted(still)]
    return found


def judged(of_model: Sequence[Rule], keys: Sequence[int]) -> list[Finding]:
    """The rows with these keys that break one of the rules of their table."""
    return [Finding(rule, key) for rule in of_model for key in sorted(rule.look(keys))]


def _walk(model: type[models.Model], of_model: Sequence[Rule], report: Report, chunk: int) -> Iterator[Step]:
    last = model._default_manager.aggregate(last=Max("pk"))["last"] or 0
    rows = after = 0
    while after < last:
        keys, suspects = _look(model, of_model, report.sums, after=after, last=last, chunk=chunk)
        report.add(confirmed(suspects))
        rows += len(keys)
        after = keys[-1] if len(keys) == chunk else last
        yield Step(model, rows, after / last)


def _look(
    model: type[models.Model], of_model: Sequence[Rule], sums: Sums, *, after: int, last: int, chunk: int
) -> tuple[list[int], list[Finding]]:
    with _one_moment():
        rows = model._default_manager.filter(pk__gt=after, pk__lte=last).order_by("pk")
        keys = list(rows.values_list("pk", flat=True)[:chunk])
        if model is Evidence and keys:
            sums.count(keys)
        return keys, judged(of_model, keys) if keys else []


def _by_model(every: Sequence[Rule]) -> dict[type[models.Model], list[Rule]]:
    tables: dict[type[models.Model], list[Rule]] = {}
    for rule in every:
        tables.setdefault(rule.model, []).append(rule)
    return tables


@contextmanager
def _one_moment() -> Iterator[None]:
    """REPEATABLE READ, so that rules that look at several tables compare rows of one committed state.

    It writes nothing, holds no row, and is over before the next chunk: vacuum is never kept waiting for the audit.
    """
    is_outermost = not connection.in_atomic_block
    with transaction.atomic():
        if is_outermost:
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        yield

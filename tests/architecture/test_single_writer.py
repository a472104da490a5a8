"""Only `contract` and `batch` write the contract fields of a job (DESIGN.md, rule 3), and nobody reads a clock."""

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FIELDS = {"state", "fence", "attempts", "lease_until", "result", "dead_reason", "finished_at"}
#: The bench fills tables of its own, in a schema of its own: a million jobs by the verbs would take an hour.
WRITERS = ("queue_core/contract/", "queue_core/batch.py", "queue_core/batch_sql.py", "queue_core/bench/stock.py")
#: Messages have a state too, and replies to known answers a result, with steps of their own.
QUERIES_OF_OTHERS = ("Message.objects.", "KnownReply.objects.", "Delivery.objects.")
#: Rows of their own with a state, by the folder and the names that they have there and nobody gives a job.
ROWS_OF_OTHERS = {"queue_core/relay/": {"delivery", "endpoint"}, "queue_core/imports/": {"run"}}
WRITING_SQL = re.compile(
    r"\b(?:update|insert\s+into|delete\s+from|truncate|copy|merge\s+into)\s+(?:table\s+)?(?:only\s+)?\"?queue_core_job\b",
    re.IGNORECASE,
)
CLOCKS = {
    ("datetime", "now"),
    ("datetime", "utcnow"),
    ("datetime", "today"),
    ("date", "today"),
    ("time", "time"),
    ("timezone", "now"),
}


def sources(*packages: str) -> Iterator[tuple[str, ast.Module]]:
    for package in packages:
        for path in sorted((ROOT / package).rglob("*.py")):
            if "migrations" not in path.parts:
                yield path.relative_to(ROOT).as_posix(), parsed(path)


@functools.cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def is_writer(name: str) -> bool:
    return name.startswith(WRITERS)


def job_writes(name: str, tree: ast.Module) -> Iterator[str]:
    """Every place that could write a job's contract field."""
    for node in ast.walk(tree):
        where = f"{name}:{getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in _flat(targets):
                # Whatever the variable is called: nobody else assigns a field of such a name to anything.
                if isinstance(target, ast.Attribute) and target.attr in FIELDS and not _is_of_others(name, target):
                    yield f"{where} assigns {target.attr}"
        elif isinstance(node, ast.Call):
            yield from (f"{where} {what}" for what in _calls(node))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and WRITING_SQL.search(node.value):
            yield f"{where} writes jobs in SQL"


def _is_of_others(name: str, target: ast.Attribute) -> bool:
    return any(name.startswith(folder) and ast.unparse(target.value) in rows for folder, rows in ROWS_OF_OTHERS.items())


def _flat(targets: list[ast.expr]) -> Iterator[ast.expr]:
    for target in targets:
        if isinstance(target, ast.Tuple | ast.List):
            yield from _flat(target.elts)
        else:
            yield target


def _is_job(node: ast.expr) -> bool:
    return "job" in ast.unparse(node).lower()


def _calls(node: ast.Call) -> Iterator[str]:
    called = ast.unparse(node.func)
    names = {keyword.arg for keyword in node.keywords}
    text = ast.unparse(node)
    of_others = called.startswith(QUERIES_OF_OTHERS)
    if called.endswith((".update", ".aupdate", ".update_or_create")) and not of_others and names & FIELDS:
        yield f"updates {sorted(names & FIELDS)}"
    if called.endswith((".bulk_update", ".bulk_create", ".create", ".get_or_create")) and "Job.objects" in called:
        yield f"calls {called}"
    if called == "setattr" and _is_job(node.args[0]):
        yield "sets an attribute of a job by name"
    if called.endswith((".save", ".delete")) and _is_job(node.func) and "job" in called.lower():
        yield f"calls {called}"
    if called == "Job" and "models.Job" not in text:
        yield "makes a job"


def test_only_the_contract_and_its_twin_write_jobs() -> None:
    found = [
        write
        for name, tree in sources("queue_core", "reviewboard")
        if not is_writer(name) and not name.startswith("queue_core/models/")
        for write in job_writes(name, tree)
    ]

    assert found == []


@pytest.mark.parametrize(
    "line",
    [
        "job.state = 'DONE'",
        "job.fence, other = 1, 2",
        "locked_job.attempts += 1",
        "row.fence += 1",
        "found.filter(pk=1).update(lease_until=None)",
        "cursor.execute('update only \"queue_core_job\" set fence = 9')",
        "cursor.execute('MERGE INTO queue_core_job USING x ON true')",
        "Job.objects.filter(pk=1).update(state='DONE')",
        "Job.objects.create(state='DONE')",
        "lane.jobs.update(result='APPROVED')",
        "setattr(job, name, 1)",
        "job.save()",
        "cursor.execute('UPDATE queue_core_job SET fence = 9')",
        "Job.objects.bulk_update(jobs, ['state'])",
    ],
)
def test_a_second_writer_would_be_found(line: str) -> None:
    assert list(job_writes("elsewhere.py", ast.parse(line)))


def test_the_relay_writes_its_own_rows_and_no_job() -> None:
    assert not list(job_writes("queue_core/relay/rows.py", ast.parse("delivery.state = 'delivered'")))
    assert list(job_writes("queue_core/relay/rows.py", ast.parse("row.state = 'DONE'")))


def test_nobody_but_the_clock_reads_the_time() -> None:
    """`time.monotonic` is allowed: it measures waits and decides nothing."""
    found = [
        f"{name}:{node.lineno} {ast.unparse(node.func)}"
        for name, tree in sources("queue_core", "reviewboard")
        if name != "queue_core/clock.py"
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and (ast.unparse(node.func.value).split(".")[-1], node.func.attr) in CLOCKS
    ]

    assert found == []


def test_the_fixed_clock_is_for_tests_traces_and_simulations() -> None:
    allowed = ("queue_core/clock.py", "queue_core/traces.py", "reviewboard/demo/")
    found = [
        name
        for name, tree in sources("queue_core", "reviewboard")
        if not name.startswith(allowed)
        and any(isinstance(node, ast.Name) and node.id == "FixedClock" for node in ast.walk(tree))
    ]

    assert found == []


def test_the_rules_know_no_http_and_no_html() -> None:
    """`queue_core` can be installed into another Django project; its admin is the one part that is pages."""
    forbidden = ("django.http", "django.shortcuts", "django.template", "django.views", "django_htmx")
    found = [
        f"{name} imports {module}"
        for name, tree in sources("queue_core")
        if not name.startswith("queue_core/admin")
        for module in imported(tree)
        if module.startswith(forbidden)
    ]

    assert found == []


def imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module

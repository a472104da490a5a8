"""Which tables a rule would read from end to end, if they were as large as they become."""

import json
from collections.abc import Iterator
from typing import Any

from django.db import connection

#: What grows with every ticket. The others (lanes, runs, people, acts) are few beside them.
NAMES = (
    "ticket evidence job attempt lateanswer decision message delivery deliverytry item assignment itempass secondlook "
    "blindcheck appeal auditentry recallentry bulkentry importrefusal importpart importforeseen"
)
LARGE = [f"queue_core_{name}" for name in NAMES.split()]
#: Of open work alone: as few as there are people and workers for, beside all that is done.
OF_OPEN_WORK = (
    "item_open",
    "item_open_once_a_job",
    "item_oldest",
    "item_longest",
    "attempt_open",
    "job_leased",
    "message_kept_back",
    "message_to_number",
)


def pretend_millions() -> None:
    """Let the planner believe, for this transaction, that each page of a large table holds a million rows."""
    with connection.cursor() as cursor:
        cursor.execute("UPDATE pg_class SET relpages = 1, reltuples = 1000000 WHERE relname = ANY(%s)", [LARGE])
        for kind in ("seqscan", "hashjoin", "mergejoin"):
            cursor.execute(f"SET LOCAL enable_{kind} = off")


def read_whole(statement: str, params: dict[str, Any]) -> set[str]:
    """The large tables that the plan goes through without asking for keys.

    It does so where it has no index for what is asked: any other way is dearer now.
    """
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (FORMAT JSON) {statement}", params)
        [[found]] = cursor.fetchall()
    plan = json.loads(found) if isinstance(found, str) else found
    return {node["Relation Name"] for node in _nodes(plan[0]["Plan"]) if _is_whole(node)}


def _is_whole(node: dict[str, Any]) -> bool:
    is_scan = node.get("Relation Name") in LARGE and node["Node Type"] != "Bitmap Heap Scan"
    return is_scan and "Index Cond" not in node and node.get("Index Name") not in OF_OPEN_WORK


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for inner in plan.get("Plans", []):
        yield from _nodes(inner)

"""What was found, as a table for people and as one object for programs."""

import os
import platform
from collections.abc import Sequence
from dataclasses import asdict
from statistics import median
from typing import Any

from django.db import connection

from queue_core.bench.crew import Slice
from queue_core.bench.measures import Found, Size, p95

#: What each ratio is to reach (docs/bench.md), and whether it may not exceed it instead.
TARGETS = {
    "batch_50_vs_ideal": ">= 0.5",
    "claim_next_1_vs_ideal": ">= 0.5",
    "single_vs_ideal": ">= 0.3",
    "hot_lane_cap_vs_no_cap": ">= 0.8",
    "claim_p95_1m_vs_10k": "<= 1.5",
    "open_snapshot_vs_none": ">= 0.7",
    "celery_vs_plain_celery_row": ">= 8",
}
SETTINGS = ("server_version", "fsync", "synchronous_commit", "shared_buffers", "wal_compression")


def as_object(found: Found, size: Size) -> dict[str, Any]:
    """`ratios`, and beside them the figures that they come from: per path the middle rate and all turns."""
    return {
        "ratios": found.ratios,
        "figures": {name: _figures(slices) for name, slices in found.slices.items()},
        "options": asdict(size),
        "machine": {"cpus": os.cpu_count(), "python": platform.python_version(), "postgresql": _settings()},
    }


def as_table(found: Found) -> list[str]:
    lines = [f"{'path':<24}{'jobs/s':>10}  {'claim p95':>10}  turns"]
    for name, slices in found.slices.items():
        figures = _figures(slices)
        claim = f"{figures['claim_p95_ms']:.1f} ms" if figures["claim_p95_ms"] else ""
        turns = " ".join(f"{rate:,.0f}" for rate in figures["turns"])
        lines.append(f"{name:<24}{figures['jobs_per_second']:>10,.0f}  {claim:>10}  {turns}")
    lines += ["", f"{'ratio':<32}{'found':>8}  target"]
    for name, ratio in found.ratios.items():
        lines.append(f"{name:<32}{'-' if ratio is None else f'{ratio:.2f}':>8}  {TARGETS.get(name, '')}".rstrip())
    return lines


def _figures(slices: Sequence[Slice]) -> dict[str, Any]:
    return {
        "jobs_per_second": round(median(one.rate for one in slices), 1),
        "jobs": sum(one.jobs for one in slices),
        "claim_p95_ms": round(median(p95(one) for one in slices) * 1000, 2),
        "turns": [round(one.rate, 1) for one in slices],
    }


def _settings() -> dict[str, str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT name, setting FROM pg_settings WHERE name = ANY(%s)", [list(SETTINGS)])
        return dict(cursor.fetchall())

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from queue_core import contract
from queue_core.clock import DATABASE_CLOCK, Clock
from queue_core.contract import NewTicket
from queue_core.models import Job, Lane
from tests.factories import make_connection, make_ground, make_lane
from tests.workers.staged import RULES, Stage

LIMIT = timedelta(seconds=2)


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


@pytest.fixture
def staged_lane(stage: Stage, settings: Any, db: None) -> Lane:
    """A lane that runs stage 2 with cap 100 at a staged model."""
    settings.QUEUE_CORE_CONNECTIONS = {"staged": "tests.workers.staged.build"}
    return make_staged_lane(stage)


def make_staged_lane(stage: Stage, *, connection: dict[str, Any] | None = None, **fields: Any) -> Lane:
    make_ground()
    limits = {"kind": "staged", "address": str(stage.folder), "call_time_limit": LIMIT} | (connection or {})
    lane = make_lane(connection=make_connection(**limits), **({"lease": timedelta(seconds=5)} | fields))
    assert lane.policy is not None
    lane.policy.rules = RULES
    lane.policy.save()
    return lane


def receive(lane: Lane, *texts: str, clock: Clock = DATABASE_CLOCK, **fields: Any) -> list[Job]:
    """A waiting job for each text, in real time unless a clock says otherwise."""
    return [
        contract.receive(
            NewTicket(
                **(
                    {
                        "source": "test",
                        "external_id": f"{lane.name}-{number}-{text}",
                        "revision": "v1",
                        "lane": lane,
                        "evidence": {"text": text},
                    }
                    | fields
                )
            ),
            clock=clock,
        ).job
        for number, text in enumerate(texts)
    ]

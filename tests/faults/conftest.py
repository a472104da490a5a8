from typing import Any

import pytest

from tests.workers.conftest import stage

__all__ = ["stage"]


@pytest.fixture
def staged_settings(settings: Any) -> None:
    settings.QUEUE_CORE_CONNECTIONS = {"staged": "tests.workers.staged.build"}

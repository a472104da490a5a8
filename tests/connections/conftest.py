from collections.abc import Iterator

import pytest

from reviewboard.model_server import RunningServer, running


@pytest.fixture(scope="session")
def model_server() -> Iterator[RunningServer]:
    with running() as server:
        yield server


@pytest.fixture
def model(model_server: RunningServer) -> RunningServer:
    """The stand-in, well and with nothing remembered."""
    model_server.set()
    model_server.forget()
    return model_server

"""The description says what is true: read by schemathesis, which tries what it says and what it forbids."""

import logging
import re
import time
from collections.abc import Iterator

import pytest
import schemathesis
from django.utils.html import escape
from schemathesis.engine import from_schema
from schemathesis.engine.events import FatalError, NonFatalError, ScenarioFinished
from schemathesis.specs.openapi.schemas import OpenApiSchema

from queue_core.clock import DATABASE_CLOCK
from queue_core.models import Endpoint, Lane
from queue_core.models.api_keys import KeyScope
from reviewboard.api.bodies import NDJSON
from reviewboard.api.problems import CODES
from tests.api.conftest import API
from tests.factories import done_job, make_lane

pytestmark = pytest.mark.django_db


def test_the_page_says_all_that_the_document_says_without_a_script_and_loads_nothing_from_elsewhere(client) -> None:
    document = client.get(f"{API}/openapi.json").json()
    page = client.get(f"{API}/docs").content.decode()

    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            assert f"<code>{method.upper()} {path}</code>" in page
            title = escape(operation["summary"])
            assert f">{title}</h2>" in page
            assert f">{title}</a>" in page
            [scope] = operation["security"][0]["Key"]
            assert scope in KeyScope.values
    anchors = re.findall(r'id="([^"]+)"', page)
    assert len(anchors) == len(set(anchors))
    assert set(re.findall(r'href="#([^"]+)"', page)) <= set(anchors)
    assert {f"shape-{name}" for name in document["components"]["schemas"]} <= set(anchors)
    assert "https://" not in page


def test_every_operation_asks_for_a_key_and_tells_its_failures(client) -> None:
    document = client.get(f"{API}/openapi.json").json()

    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            assert operation["security"], (path, method)
            assert {"400", "401", "403", "429"} <= operation["responses"].keys(), (path, method)
            shown = client.generic(method.upper(), path.replace("{name}", "x").replace("{number}", "1"))
            assert (shown.status_code, shown.json()["code"]) == (401, "key_missing"), (path, method)
    assert set(document["components"]["schemas"]["ProblemOut"]["properties"]["code"]["enum"]) == set(CODES)


@schemathesis.serializer(*NDJSON)
def as_lines(_context: object, value: object) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")


#: Beside success: a lane that is not there, a deadline that is over. No schema can say these.
TRUE_OF_GOOD_DATA = ["2xx", "400", "404", "409"]


@pytest.fixture
def _quiet() -> Iterator[None]:
    """Thousands of refusals, each a line, would bury what was found."""
    logger = logging.getLogger("django.request")
    before, logger.disabled = logger.disabled, True
    yield
    logger.disabled = before


@pytest.fixture
def document(_quiet: None, live_server, lane: Lane, make_key) -> OpenApiSchema:
    """With something there of each kind, so that not all of it is refused for being missing."""
    done_job(make_lane(name="running"))
    Endpoint.objects.create(name="shop", address="https://shop.example/", created_at=DATABASE_CLOCK.now())
    config = schemathesis.Config.from_dict(
        {
            "headers": {"Authorization": f"Bearer {make_key().secret}"},
            "generation": {"max-examples": 10, "deterministic": True, "allow-x00": False},
            "checks": {"positive_data_acceptance": {"expected-statuses": TRUE_OF_GOOD_DATA}},
            "phases": {"stateful": {"enabled": False}},
        }
    )
    return schemathesis.openapi.from_url(f"{live_server.url}{API}/openapi.json", config=config)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("limit", [pytest.param(8.0, id="a-while"), pytest.param(150.0, marks=pytest.mark.long)])
def test_what_the_document_says_is_what_is_done(document: OpenApiSchema, limit: float) -> None:
    """By data that the schemas allow and by data that they forbid, for so many seconds: schemathesis finds nothing."""
    found, tried, ends = [], 0, time.monotonic() + limit
    stream = from_schema(document).execute()
    for event in stream:
        assert not isinstance(event, NonFatalError | FatalError), event
        if isinstance(event, ScenarioFinished):
            tried += len(event.recorder.interactions)
            for checks in event.recorder.checks.values():
                found += [check.failure_info for check in checks if check.failure_info is not None]
        if time.monotonic() > ends:
            stream.stop()

    told = {f"{one.failure.operation} {one.failure.title}: {one.failure.message}\n{one.code_sample}" for one in found}
    assert not told, "\n\n".join(sorted(told)[:40])
    assert tried > 50, tried

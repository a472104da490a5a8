"""What Prometheus reads, and who may."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from queue_core import contract, figures
from queue_core.clock import DATABASE_CLOCK, FixedClock
from queue_core.models import Job
from tests.factories import dead_job, done_job, make_lane, new_ticket, waiting_job

pytestmark = pytest.mark.django_db

TOKEN = "a-token-of-the-test"
MINUTE = timedelta(minutes=1)


@pytest.fixture
def token(settings) -> dict[str, str]:
    settings.METRICS_TOKEN = TOKEN
    return {"Authorization": f"Bearer {TOKEN}"}


def scrape(client, headers) -> dict[str, float]:
    answer = client.get("/metrics", headers=headers)
    assert answer.status_code == 200
    lines = [line for line in answer.content.decode().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


def test_without_a_token_there_are_no_metrics(client) -> None:
    assert client.get("/metrics").status_code == 404
    assert client.get("/metrics", headers={"Authorization": "Bearer "}).status_code == 404


@pytest.mark.parametrize("given", [None, "Bearer wrong", TOKEN, f"Basic {TOKEN}", "Bearer \u00e9"])
def test_another_token_is_refused_and_reads_nothing(client, token, given: str | None) -> None:
    headers = {} if given is None else {"Authorization": given}
    with CaptureQueriesContext(connection) as statements:
        answer = client.get("/metrics", headers=headers)

    assert answer.status_code == 401
    assert TOKEN not in answer.content.decode()
    assert not [one for one in statements if "queue_core" in one["sql"]]


def test_gauges_equal_what_the_tables_hold_folded_or_not_obs_03(client, token) -> None:
    lane = make_lane()
    waiting_job(lane)
    done_job(lane)
    figures.fold()
    done_job(lane, result="MANUAL")
    dead_job(lane)
    read = scrape(client, token)

    for state in ("WAITING", "LEASED", "DONE", "DEAD"):
        held = Job.objects.filter(lane=lane, state=state).count()
        assert read[f'reviewboard_jobs{{lane="{lane.name}",state="{state}"}}'] == held, state
    assert read[f'reviewboard_dead_jobs{{lane="{lane.name}",reason="deadline"}}'] == 1
    assert read[f'reviewboard_open_items{{kind="manual",lane="{lane.name}"}}'] == 1


def test_leases_of_a_dead_worker_are_not_live_obs_05(client, token) -> None:
    """Nobody sweeps here: what a dead scheduler would leave undone."""
    lane, now = make_lane(lease=MINUTE), DATABASE_CLOCK.now()
    jobs = [contract.receive(new_ticket(lane, deadline=None), clock=FixedClock(now)).job for _ in range(6)]
    for job in jobs[:3]:
        assert contract.claim(job.pk, clock=FixedClock(now - 5 * MINUTE), worker="gone").token
    for job in jobs[3:5]:
        assert contract.claim(job.pk, clock=FixedClock(now), worker="here", lease=10 * MINUTE).token
    read = scrape(client, token)

    assert read[f'reviewboard_leases{{is="live",lane="{lane.name}"}}'] == 2
    assert read[f'reviewboard_leases{{is="expired",lane="{lane.name}"}}'] == 3
    assert sum(number for name, number in read.items() if name.startswith("reviewboard_jobs{")) == 6


def test_addresses_make_no_series_obs_01(client, token) -> None:
    make_lane()
    before = set(scrape(client, token))
    for number in range(40):
        client.get(f"/nowhere/{number}/")
        client.get(f"/jobs/{number}/")
        client.generic(f"ODD{number}", "/")

    assert set(scrape(client, token)) == before

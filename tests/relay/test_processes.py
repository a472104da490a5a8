"""The relay by real workers: what a process that died left behind goes out after its restart."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from queue_core import relay
from queue_core.clock import DATABASE_CLOCK
from queue_core.models import Delivery, Message
from tests.factories import done_job, make_lane, without_guards
from tests.relay.receiver import Receiver, hang
from tests.workers.processes import Workers, wait_until, workers_at

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def workers(broker_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings) -> Iterator[Workers]:
    monkeypatch.setenv("WEBHOOK_ALLOWED_NETWORKS", "127.0.0.1/32")
    # Secrets are made from it, here and there.
    settings.SECRET_KEY = "for-the-tests-only-0123456789abcdef0123456789abcdef"
    with workers_at(broker_url, tmp_path) as found:
        yield found


def test_what_was_committed_before_a_crash_goes_out_after_the_restart_and_nothing_twice_by_another_id_whk_12(
    workers: Workers, make_endpoint, receiver: Receiver
) -> None:
    """WHK-12: nobody was alive between the commit and the next start; and one dies while its consumer hangs."""
    endpoint = make_endpoint(receiver.url, time_limit="00:00:20")
    lane = make_lane()
    for _count in range(3):
        done_job(lane)
    receiver.plan = [hang] * 3
    first = workers.start(processes=1)
    wait_until(lambda: len(receiver.requests) >= 3, workers.logs() or "three messages are out")
    workers.kill(first)
    receiver.let_go.set()
    # What it had out is swept when its leases are over; here they are over at once.
    with without_guards():
        Delivery.objects.filter(lease__isnull=False).update(lease_until=DATABASE_CLOCK.now())
    endpoint.sender = endpoint.sender_until = None
    endpoint.save(update_fields=["sender", "sender_until"])
    done_job(lane)

    workers.start(processes=1)
    wait_until(
        lambda: Delivery.objects.filter(state="delivered").count() == 4,
        f"everything is delivered: {workers.logs()[-3000:]}",
    )

    assert set(receiver.ids) == {str(key) for key in Message.objects.values_list("key", flat=True)}
    assert relay.newest_number() == 4
    lost = Delivery.objects.filter(tried__outcome="lost").distinct().count()
    assert lost == 3

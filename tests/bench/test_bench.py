"""The bench itself: that it runs whole, says what it promises, and leaves nothing behind."""

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, connection

from queue_core.bench import celery_path, ground, stock
from queue_core.models import Attempt, Job, Lane
from tests.workers.processes import environment_for

RATIOS = {
    "batch_50_vs_ideal",
    "claim_next_1_vs_ideal",
    "single_vs_ideal",
    "hot_lane_cap_vs_no_cap",
    "claim_p95_1m_vs_10k",
    "open_snapshot_vs_none",
    "celery_vs_plain_celery_row",
}


def schemas() -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT nspname FROM pg_namespace")
        return {row[0] for row in cursor.fetchall()}


@pytest.mark.long
@pytest.mark.processes
@pytest.mark.timeout(900)
@pytest.mark.django_db(transaction=True)
def test_a_small_bench_measures_every_ratio_and_leaves_no_schema(
    broker_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment_for(broker_url=broker_url).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("celery.current_app.conf.broker_url", broker_url)
    before, out, err = schemas(), StringIO(), StringIO()

    call_command("bench", "--json", jobs=200, backlog=1000, workers=2, stdout=out, stderr=err)

    found: dict[str, Any] = json.loads(out.getvalue())
    assert set(found["ratios"]) >= RATIOS
    assert all(found["ratios"][name] > 0 for name in RATIOS), found["ratios"]
    assert all(figures["jobs"] > 0 for figures in found["figures"].values()), found["figures"]
    assert "large backlog: 1000 of 1000" in err.getvalue()
    assert schemas() == before
    assert not Lane.objects.exists()
    assert not Job.objects.exists()


@pytest.mark.long
@pytest.mark.django_db(transaction=True)
def test_a_part_alone_measures_its_own_ratio_and_fills_no_large_backlog() -> None:
    before, out, err = schemas(), StringIO(), StringIO()

    call_command("bench", "--json", only=["hot"], jobs=50, backlog=100, workers=1, stdout=out, stderr=err)

    found: dict[str, Any] = json.loads(out.getvalue())
    assert list(found["ratios"]) == ["hot_lane_cap_vs_no_cap"]
    assert set(found["figures"]) == {"hot_with_cap", "hot_without_cap"}
    assert "large backlog" not in err.getvalue()
    assert schemas() == before


@pytest.mark.django_db
def test_a_turn_leaves_no_message_for_the_next_one(broker_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second turn's worker worked off what the first had left, and came to nothing of its own in a minute."""
    monkeypatch.setattr("celery.current_app.conf.broker_url", broker_url)

    for _turn in range(3):
        with celery_path._own_queue() as app, app.producer_or_acquire() as producer:
            celery_path.end_row.apply_async(args=(1,), producer=producer)
            queue = app.conf.task_queues[0](producer.channel)
            assert queue.queue_declare(passive=True).message_count == 1
            celery_path._delete_queue()
            assert queue.channel._size(queue.name) == 0


@pytest.mark.django_db(transaction=True)
def test_a_schema_of_somebody_elses_is_never_dropped() -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE SCHEMA {ground.SCHEMAS[0]}")
    try:
        with pytest.raises(CommandError, match=ground.SCHEMAS[0]):
            call_command("bench", jobs=50, backlog=100, workers=1, stdout=StringIO(), stderr=StringIO())

        assert ground.SCHEMAS[0] in schemas()
    finally:
        with connection.cursor() as cursor:
            cursor.execute(f"DROP SCHEMA {ground.SCHEMAS[0]}")


@pytest.mark.django_db(transaction=True)
def test_a_role_that_is_no_superuser_stores_its_backlog_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stock, "_act_as", lambda _role: False)

    stock.fill(stock.make_lanes(2), 20)

    assert Job.objects.filter(state="WAITING").count() == 20
    assert Attempt.objects.filter(outcome="released").exists()
    with pytest.raises(IntegrityError, match="its fence never falls"):
        Job.objects.update(fence=-1)


@pytest.mark.parametrize("options", [{"jobs": 49}, {"backlog": 99}, {"batch": 501}, {"workers": 0}])
def test_options_out_of_bounds_are_refused_by_name(options: dict[str, int]) -> None:
    with pytest.raises(CommandError, match=f"--{next(iter(options))} is from"):
        call_command("bench", stdout=StringIO(), stderr=StringIO(), **options)

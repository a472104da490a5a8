"""Open and ended jobs of every kind, in lanes of every state, from a source of chance."""

from datetime import timedelta
from random import Random

from django.db import connection

from queue_core import contract
from queue_core.models import Drainer, Hold, Job, Lane, Presence, Stage, StageRun
from queue_core.states import AttemptOutcome, HoldReason
from tests.factories import at, claim, clock, done_job, make_connection, make_lane, waiting_job, without_guards

#: The moment at which everything is judged. Rows are made before it.
NOW = 500.0

LANES = (
    "steady",
    "probe",
    "held",
    "paused",
    "unjudged",
    "full",
    "rated",
    "shared",
    "without_plan",
    "without_policy",
    "without_room",
)


def a_lane(state: str) -> Lane:
    match state:
        case "probe":
            return make_lane(number=1, cap=50)
        case "without_room":
            return make_lane(run={"rate": 100})
        case "full":
            return make_lane(cap=100, least_call_time=timedelta(seconds=30))
        case "rated":
            return make_lane(run={"rate": 100})
        case "shared":
            return make_lane(connection=make_connection(total_cap=100))
        case _:
            return make_lane(lease=timedelta(seconds=100))


def settle(lane: Lane, state: str) -> None:
    """Bring a lane that was filled into the state in which it is judged."""
    match state:
        case "held" | "without_plan":
            if state == "held":
                Stage.objects.create(lane=lane, number=1, name="probe", cap=1)
            hold = Hold.objects.create(
                lane=lane, is_automatic=True, reason=HoldReason.AUTO_UNAVAILABLE, started_at=at(NOW - 60), run=lane.run
            )
            Lane.objects.filter(pk=lane.pk).update(run=None, cap=None, hold=hold)
        case "paused":
            Lane.objects.filter(pk=lane.pk).update(claims_not_before=at(NOW + 60))
        case "unjudged":
            Lane.objects.filter(pk=lane.pk).update(judged_at=at(NOW - 31))
        case "full":
            Lane.objects.filter(pk=lane.pk).update(cap=1)
        case "rated" | "without_room":
            # A run is written once; the jobs of this lane were claimed under it before it was full.
            with connection.cursor() as cursor:
                cursor.execute("SET LOCAL session_replication_role = replica")
                StageRun.objects.filter(pk=lane.run_id).update(rate=1 if state == "rated" else 0)
                cursor.execute("SET LOCAL session_replication_role = origin")
        case "without_policy":
            Lane.objects.filter(pk=lane.pk).update(policy=None)
        case "shared":
            lane.connection.total_cap = 1
            lane.connection.save()


def a_job(lane: Lane, chance: Random) -> Job:
    """One job of a kind drawn by chance."""
    kind = chance.choice(
        [
            "waiting",
            "near",
            "passed",
            "running",
            "lapsed",
            "spent",
            "resting",
            "rested",
            "resting_too_long",
            "manual",
            "done",
            "dead",
            "gone",
        ]
    )
    added = chance.uniform(0, 300)
    match kind:
        case "near":
            return waiting_job(lane, added=added, deadline=NOW + chance.choice([0.4, 0.5, 0.6, 30.4, 30.5, 30.6]))
        case "passed":
            return waiting_job(lane, added=added, deadline=NOW - chance.choice([0, 0.1, 50]))
        case "running" | "lapsed" | "spent":
            job = waiting_job(lane, added=added, deadline=NOW + chance.choice([0.2, 100, 1000]))
            claim(job, when=NOW - (10 if kind == "running" else 200), lease=timedelta(seconds=100), max_attempts=9)
            if kind == "spent":
                with without_guards():
                    Job.objects.filter(pk=job.pk).update(max_attempts=1)
            return job
        case "resting" | "rested" | "resting_too_long":
            job = waiting_job(lane, added=added, deadline=NOW + (20.5 if kind == "resting_too_long" else 1000))
            token = claim(job, when=NOW - 150)
            contract.release(token, outcome=AttemptOutcome.TIMEOUT, clock=clock(NOW - 100))
            Job.objects.filter(pk=job.pk).update(available_at=at(NOW + (-1 if kind == "rested" else 20)))
            return job
        case "manual":
            return done_job(lane, added=added, result="MANUAL", claimed=301, completed=302)
        case "done":
            return done_job(lane, added=added, claimed=301, completed=302)
        case "dead":
            job = waiting_job(lane, added=added, deadline=NOW - 1)
            contract.sweep(clock=clock(NOW - 1))
            return job
        case "gone":
            job = waiting_job(lane, added=added)
            contract.withdraw(source=job.ticket.source, external_id=job.ticket.external_id, clock=clock(NOW - 1))
            return job
    severity, exposure = chance.choice([0, 1, 2]), chance.choice(["hidden", "limited", "live"])
    return waiting_job(lane, added=added, severity=severity, exposure=exposure)


def attend(lane: Lane, how: str) -> None:
    """Somebody fetches: a drainer of this lane, or a worker that was seen."""
    if how == "drainer":
        Drainer.objects.create(lane=lane, place=1, task="t", worker="w", taken_at=at(0), until=at(NOW + 5))
    if how == "worker":
        Presence.objects.get_or_create(
            kind="worker", name="w1", defaults={"started_at": at(0), "seen_at": at(NOW - 29)}
        )

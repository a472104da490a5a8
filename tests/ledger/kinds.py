"""One job of every kind with what followed from it: what damage is done to, and what guards are tried on."""

from queue_core import contract, figures, people, relay
from queue_core.contract import Ending
from queue_core.models import Assignment, Endpoint, Hold, Job, Lane
from queue_core.relay import rows
from queue_core.states import LeaseToken, TryOutcome
from reviewboard.models import Person
from tests.factories import at, clock, dead_job, done_job, leased_job, make_lane, waiting_job
from tests.people.cast import item_of, leo, rita, take

type Scene = dict[str, int]


def staged() -> Scene:
    lane, other, reviewer, lead = make_lane(), make_lane(cap=None), rita(), leo()
    endpoint = Endpoint.objects.create(name="shop", address="https://shop.test/", kinds=["decision"], created_at=at(0))
    done, requeued, decided = done_job(lane), requeued_job(lane, lead), done_job(lane, result="MANUAL")
    assignment = decide(decided, reviewer)
    late_answer(done)
    rows = {
        "lane": lane.pk,
        "other_lane": other.pk,
        "hold": Hold.objects.get(lane=other).pk,
        "leo": lead.pk,
        "waiting": (waiting := waiting_job(lane)).pk,
        "waiting_ticket": waiting.ticket_id,
        "withdrawn_ticket": withdrawn_job(lane).ticket_id,
        "leased": leased_job(lane, claimed=50)[0].pk,
        "done": done.pk,
        "done_ticket": done.ticket_id,
        "manual": done_job(lane, result="MANUAL").pk,
        "dead": dead_job(lane, deadline=40).pk,
        "requeued": requeued.pk,
        "pulled": pulled_job(lane, lead).pk,
        "decided": decided.pk,
        "assignment": assignment,
        "delivery": delivered(done, endpoint),
    }
    figures.fold()
    return rows


def delivered(job: Job, endpoint: Endpoint) -> int:
    """The delivery of a job's decision, taken by its consumer. Those of the other decisions wait."""
    relay.number_messages(clock=clock(70))
    [taken] = rows.take(endpoint, 1, clock=clock(71))
    assert taken.delivery.ticket_id == job.ticket_id
    rows.end(endpoint.pk, [(taken, relay.Answer(TryOutcome.DELIVERED, 204))], clock=clock(72))
    return taken.delivery.pk


def requeued_job(lane: Lane, lead: Person) -> Job:
    """DEAD with an attempt behind it, and given back to the machine."""
    job, _token = leased_job(lane, deadline=10)
    contract.sweep(clock=clock(10))
    contract.requeue(job.pk, deadline=at(1000), clock=clock(20), person=lead, reason="again")
    return job


def withdrawn_job(lane: Lane) -> Job:
    job = waiting_job(lane)
    contract.withdraw(source=job.ticket.source, external_id=job.ticket.external_id, clock=clock(40))
    return job


def pulled_job(lane: Lane, lead: Person) -> Job:
    job = waiting_job(lane)
    contract.pull(job.pk, person=lead, clock=clock(60), reason="mine")
    return job


def decide(job: Job, reviewer: Person) -> int:
    token = take(item_of(job), reviewer, when=30)
    people.resolve(token, person=reviewer, verdict="APPROVED", note="looks well", clock=clock(31))
    return Assignment.objects.get(item__job=job).pk


def late_answer(job: Job) -> None:
    attempt = job.attempt_rows.get()
    token = LeaseToken(job.pk, 9, "v1", attempt.pk, attempt.key)
    contract.complete(token, Ending(result="APPROVED", scores={"insult": 0.1}), clock=clock(70))

"""The first layer: a decision that is made, and that an endpoint which wants it does not have."""

from django.db.models import Exists, OuterRef, Q, QuerySet

from queue_core.models import Delivery, Endpoint, Job, Message
from queue_core.states import DeliveryState, EndpointState, JobState, MessageKind, MessageState
from queue_core.where.words import Cause, Layer, Moves, Standing

ENDED = (JobState.DONE, JobState.DEAD)


def undelivered(job: Job) -> Standing | None:
    """Where an ended job stands whose decision some endpoint lacks; None for any other."""
    if Job.objects.filter(ticket_id=job.ticket_id, revision=job.revision, round__gt=job.round).exists():
        return None
    pending = _pending(job.ticket_id, job.revision).select_related("endpoint").order_by("created_at", "pk").first()
    if pending is not None:
        params = {"endpoint": pending.endpoint.name, "since": pending.created_at, "tries": pending.tries}
        return Standing(Layer.DELIVERY, Cause.NOT_DELIVERED, Moves.DELIVERY, params | {"at": pending.due_at})
    kept = _kept_back(job.ticket_id, job.revision).values_list("created_at", flat=True).first()
    if kept is not None and is_wanted(job.lane_id):
        return Standing(Layer.DELIVERY, Cause.KEPT_BACK, Moves.LEAD_ACCEPTS, {"since": kept})
    return None


def in_delivery(jobs: QuerySet[Job]) -> QuerySet[Job]:
    """The jobs of a queryset that stand in this layer."""
    ticket, revision = OuterRef("ticket_id"), OuterRef("revision")
    later = Job.objects.filter(ticket_id=ticket, revision=revision, round__gt=OuterRef("round"))
    lanes = list(Endpoint.objects.filter(_wants()).values_list("lanes", flat=True))
    wanted = Q() if any(not chosen for chosen in lanes) else Q(lane_id__in={pk for chosen in lanes for pk in chosen})
    kept = Exists(_kept_back(ticket, revision)) if lanes else Q(pk__in=[])
    lacking = Q(Exists(_pending(ticket, revision))) | (Q(kept) & wanted)
    return jobs.filter(lacking, ~Exists(later), state__in=ENDED)


def is_wanted(lane_id: int) -> bool:
    """Whether any endpoint wants decisions of this lane."""
    return Endpoint.objects.filter(_wants(), Q(lanes=[]) | Q(lanes__contains=[lane_id])).exists()


def _wants() -> Q:
    return ~Q(state=EndpointState.RETIRED) & Q(kinds__contains=[MessageKind.DECISION.value])


def _pending(ticket: int | OuterRef, revision: str | OuterRef) -> QuerySet[Delivery]:
    return Delivery.objects.filter(
        ticket_id=ticket,
        state=DeliveryState.PENDING,
        kind=MessageKind.DECISION,
        message__decision__revision=revision,
    )


def _kept_back(ticket: int | OuterRef, revision: str | OuterRef) -> QuerySet[Message]:
    return Message.objects.filter(
        ticket_id=ticket, kind=MessageKind.DECISION, state=MessageState.KEPT_BACK, decision__revision=revision
    )

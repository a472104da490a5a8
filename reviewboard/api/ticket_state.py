"""A ticket as its source may read it: no person's name, and no decision before its message may go out."""

from dataclasses import replace
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _

from queue_core import where
from queue_core.models import Decision, Job, Message, Ticket
from queue_core.states import MessageState
from queue_core.where import Cause, Standing
from reviewboard.where_text import mover, sentence


def ticket_out(ticket: Ticket, *, now: datetime) -> dict[str, Any]:
    """The current revision's state, its decision in force, and where it waits."""
    jobs = Job.objects.filter(ticket=ticket, revision=ticket.current_revision)
    job = jobs.select_related("ticket", "lane").order_by("-round")[0]
    decision = _in_force(ticket)
    is_out = decision is not None and _is_out(decision)
    return {
        "source": ticket.source,
        "ticket": ticket.external_id,
        "revision": ticket.current_revision,
        "lane": ticket.lane.name,
        "severity": ticket.severity,
        "category": ticket.category,
        "first_seen_at": ticket.first_seen_at,
        "withdrawn_at": ticket.withdrawn_at,
        "state": job.state,
        "result": job.result if is_out or not _was_decided(job) else None,
        "dead_reason": job.dead_reason,
        "attempts": job.attempts,
        "deadline": job.deadline,
        "decision": _decision_out(decision) if decision is not None and is_out else None,
        "waiting": waiting(where.locate(job, now=now), hides_decision=not is_out),
    }


def decision_that_is_out(ticket: Ticket) -> Decision | None:
    """The decision in force, if consumers may know of it."""
    decision = _in_force(ticket)
    return decision if decision is not None and _is_out(decision) else None


def _in_force(ticket: Ticket) -> Decision | None:
    """The last link of the chain; none where it is a recall, which has no verdict."""
    chain = Decision.objects.filter(ticket=ticket, revision=ticket.current_revision, replaced_by__isnull=True)
    last = chain.select_related("reason_code").first()
    return last if last is not None and last.verdict is not None else None


def _was_decided(job: Job) -> bool:
    """Whether the job's result is, or was, a decision: before its message is out, or once it is recalled, it is none of
    a consumer's business what the model answered."""
    return Decision.objects.filter(job=job).exists()


def _is_out(decision: Decision) -> bool:
    """Whether consumers may know of it: its message has its number, as it has for whoever pages."""
    return Message.objects.filter(decision=decision, state=MessageState.READY, number__isnull=False).exists()


def _decision_out(decision: Decision) -> dict[str, Any]:
    return {
        "verdict": decision.verdict,
        "why": decision.why,
        "reason_code": decision.reason_code.code if decision.reason_code is not None else None,
        "automation": decision.automation,
        "decided_at": decision.decided_at,
    }


def waiting(standing: Standing, *, hides_decision: bool) -> dict[str, Any]:
    """Codes and sentences. People are told of as people, not by name."""
    params = dict(standing.params)
    if params.get("by"):
        params["by"] = _("a person")
    shown = replace(standing, params=params)
    text, cause = sentence(shown), standing.cause
    if hides_decision and cause == Cause.DECIDED:
        text = _("It is decided; its message has not gone out yet.")
    return {
        "layer": standing.layer.value if standing.layer is not None else None,
        "cause": cause.value,
        "sentence": text,
        "mover": mover(shown),
    }

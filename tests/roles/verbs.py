"""Which rights each verb asks for, and a call of it. A verb that takes a person needs an entry here."""

import inspect
from collections.abc import Callable
from datetime import timedelta
from types import ModuleType
from typing import Any
from uuid import UUID

from queue_core import alerts, api_keys, bulk, hold, imports, people, ramp, recalls, relay
from queue_core.clock import DATABASE_CLOCK as CLOCK
from queue_core.models import Delivery, Job
from queue_core.states import AssignmentToken, BulkKind

MODULES: tuple[ModuleType, ...] = (alerts, api_keys, bulk, hold, imports, people, ramp, recalls, relay)
WHY = "said in the test"

type Verb = Callable[[Any, Any], object]


def public_verbs() -> set[str]:
    """What a package offers under its own name, that takes a person and a clock."""
    found = set()
    for module in MODULES:
        for name, verb in vars(module).items():
            is_ours = inspect.isfunction(verb) and verb.__module__.startswith(module.__name__)
            if is_ours and not name.startswith("_") and {"person", "clock"} <= set(inspect.signature(verb).parameters):
                found.add(f"{module.__name__.removeprefix('queue_core.')}.{name}")
    return found


def _token(scene: Any) -> AssignmentToken:
    return AssignmentToken(scene.item.pk, 1, UUID(int=1))


def _decided(scene: Any) -> AssignmentToken:
    """Of the item that is not restricted."""
    return AssignmentToken(scene.decision.assignment.item_id, 1, UUID(int=1))


def _then(scene: Any) -> Any:
    return CLOCK.now() + timedelta(hours=1)


DECIDE = ("decide_item",)
VERBS: dict[str, tuple[tuple[str, ...], Verb]] = {
    "alerts.acknowledge": (("hold_lane",), lambda s, p: alerts.acknowledge(s.alert.pk, person=p, clock=CLOCK)),
    "api_keys.revoke": (("change_apikey",), lambda _s, p: api_keys.revoke(0, person=p, clock=CLOCK)),
    "bulk.preview": (
        ("requeue_item",),
        lambda _s, p: bulk.preview(BulkKind.REQUEUE, Job.objects.none(), selection={}, person=p, clock=CLOCK),
    ),
    "hold.pull": (
        ("hold_lane",),
        lambda s, p: hold.pull(s.lane.pk, person=p, form="hold", reason="precaution", clock=CLOCK),
    ),
    "people.appeal": (
        ("appeal_decision",),
        lambda s, p: people.appeal(
            source=s.decision.ticket.source, external_id=s.decision.ticket.external_id, statement=WHY, person=p,
            clock=CLOCK,
        ),
    ),
    "people.correct": (("lead_desk",), lambda s, p: people.correct(s.decision.pk, person=p, clock=CLOCK)),
    "people.erase_content": (
        ("erase_evidence",),
        lambda s, p: people.erase_content(s.job.ticket_id, person=p, ground=WHY, clock=CLOCK),
    ),
    "people.escalate": (DECIDE, lambda s, p: people.escalate(_token(s), person=p, reason=WHY, clock=CLOCK)),
    "people.escalate_item": (
        DECIDE, lambda s, p: people.escalate_item(s.item.pk, fence=0, person=p, reason=WHY, clock=CLOCK),
    ),
    "people.extend": (DECIDE, lambda s, p: people.extend(_token(s), person=p, clock=CLOCK)),
    "people.give_back": (DECIDE, lambda s, p: people.give_back(_token(s), person=p, clock=CLOCK)),
    "people.hand_over": (DECIDE, lambda s, p: people.hand_over(_token(s), person=p, to=p, clock=CLOCK)),
    "people.hand_over_item": (
        DECIDE, lambda s, p: people.hand_over_item(s.item.pk, fence=0, person=p, to=p, reason=WHY, clock=CLOCK),
    ),
    "people.lift": (
        ("preserve_evidence",), lambda s, p: people.lift(s.preserved.pk, person=p, reason=WHY, clock=CLOCK),
    ),
    "people.lift_restriction": (
        ("view_restricted", "lead_desk"),
        lambda s, p: people.lift_restriction(s.job.evidence_id, person=p, reason=WHY, clock=CLOCK),
    ),
    "people.look": (("view_restricted",), lambda s, p: people.look(_token(s), person=p, purpose=WHY, clock=CLOCK)),
    "people.preserve": (
        ("preserve_evidence",),
        lambda s, p: people.preserve(
            s.job.ticket_id, person=p, authority="A", reference="2", reason=WHY, until=_then(s), clock=CLOCK
        ),
    ),
    "people.pull": (
        ("pull_job", "decide_item"), lambda s, p: people.pull(s.waiting.pk, person=p, reason=WHY, clock=CLOCK),
    ),
    "people.report": (
        ("report_evidence",),
        lambda s, p: people.report(
            s.job.evidence_id, person=p, authority="A", reference="2", reason=WHY, clock=CLOCK
        ),
    ),
    "people.resolve": (DECIDE, lambda s, p: people.resolve(_decided(s), person=p, verdict="APPROVED", clock=CLOCK)),
    "people.resolve_requeue": (
        ("requeue_item",),
        lambda s, p: people.resolve_requeue(_token(s), person=p, deadline=_then(s), reason=WHY, clock=CLOCK),
    ),
    "people.restrict_and_leave": (DECIDE, lambda s, p: people.restrict_and_leave(_token(s), person=p, clock=CLOCK)),
    "people.skip": (DECIDE, lambda s, p: people.skip(_token(s), person=p, reason=WHY, clock=CLOCK)),
    "people.take": (DECIDE, lambda s, p: people.take(s.item.pk, person=p, clock=CLOCK)),
    "people.take_back": (DECIDE, lambda s, p: people.take_back(s.decision.pk, person=p, clock=CLOCK)),
    "people.take_next": (DECIDE, lambda _s, p: people.take_next(person=p, clock=CLOCK)),
    "ramp.accept_held_run": (
        ("raise_stage",), lambda s, p: ramp.accept_held_run(s.lane.pk, 0, person=p, reason=WHY, shown=1, clock=CLOCK),
    ),
    "ramp.close_outage": (
        ("manage_outage",), lambda s, p: ramp.close_outage(s.outage.pk, person=p, reason=WHY, clock=CLOCK),
    ),
    "ramp.force_policy": (
        ("force_policy",),
        lambda s, p: ramp.force_policy(s.lane.pk, s.lane.policy_id, person=p, reason=WHY, clock=CLOCK),
    ),
    "ramp.hand_over": (
        ("manage_outage",),
        lambda s, p: ramp.hand_over(s.outage.pk, to=p, shown=None, note=WHY, person=p, clock=CLOCK),
    ),
    "ramp.open_outage": (
        ("manage_outage",),
        lambda s, p: ramp.open_outage(
            s.lane.connection_id, person=p, cause="precaution", reason=WHY, clock=CLOCK
        ),
    ),
    "ramp.raise_stage": (
        ("raise_stage",), lambda s, p: ramp.raise_stage(s.lane.pk, person=p, reason=WHY, figures_id="", clock=CLOCK),
    ),
    "ramp.resume": (("raise_stage",), lambda s, p: ramp.resume(s.lane.pk, person=p, reason=WHY, clock=CLOCK)),
    "ramp.set_cap": (("raise_stage",), lambda s, p: ramp.set_cap(s.lane.pk, person=p, cap=1, reason=WHY, clock=CLOCK)),
    "ramp.step_down": (
        ("raise_stage",), lambda s, p: ramp.step_down(s.lane.pk, person=p, reason=WHY, to=1, clock=CLOCK),
    ),
    "ramp.write_note": (
        ("manage_outage",), lambda s, p: ramp.write_note(s.outage.pk, person=p, text=WHY, clock=CLOCK),
    ),
    "recalls.recall": (
        ("recall_decision",),
        lambda s, p: recalls.recall(
            s.lane.pk, recalls.Selection(until=CLOCK.now()), person=p, reason=WHY, shown=0, clock=CLOCK
        ),
    ),
    "relay.disable": (("manage_deliveries",), lambda s, p: relay.disable(s.endpoint.pk, person=p, clock=CLOCK)),
    "relay.enable": (("manage_deliveries",), lambda s, p: relay.enable(s.endpoint.pk, person=p, clock=CLOCK)),
    "relay.new_secret": (("change_endpoint",), lambda s, p: relay.new_secret(s.endpoint.pk, person=p, clock=CLOCK)),
    "relay.replay": (
        ("manage_deliveries",),
        lambda _s, p: relay.replay(Delivery.objects.all(), up_to=2**62, what=WHY, person=p, clock=CLOCK),
    ),
    "relay.retire": (("change_endpoint",), lambda s, p: relay.retire(s.endpoint.pk, person=p, clock=CLOCK)),
    "relay.send_test": (("manage_deliveries",), lambda s, p: relay.send_test(s.endpoint.pk, person=p, clock=CLOCK)),
    "relay.try_now": (("manage_deliveries",), lambda s, p: relay.try_now(s.endpoint.pk, person=p, clock=CLOCK)),
}  # fmt: skip
#: What is about one's own row alone, or needs a file or a row of a kind of its own: tried in tests/bulk, imports, api.
ASKED_BY_OTHERS = {
    "api_keys.make",
    "bulk.confirm",
    "bulk.second",
    "bulk.stop",
    "imports.begin",
    "imports.change",
    "imports.discard",
    "imports.settle",
    "imports.stop",
    "imports.take_report",
    "imports.upload",
}

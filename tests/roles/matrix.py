"""Which right each address asks for, and how: the matrix that test_matrix.py reads. A new address needs an entry here.

`ON` asks on the lane of the row that the address names, `SOMEWHERE` on any lane at least, for a page that lists. Of
several rights one is enough, but `ALL` needs each. `OWN` asks somewhere, and shows what is the reader's own alone.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

OPEN, SIGNED_IN, ON, ALL, SOMEWHERE, OWN = "open", "signed in", "on", "all of", "somewhere", "own"
#: Beside these the API's addresses ask for a key (tests/api), the admin's for staff (tests/admin).
ELSEWHERE = ("api/", "admin/", "metrics", "demo/")


@dataclass(frozen=True)
class Entry:
    rule: str
    rights: tuple[str, ...] = ()
    method: str = "get"
    args: Callable[[Any], list[object]] = lambda _scene: []
    data: Callable[[Any], dict[str, object]] = field(default=lambda _scene: {})


def _get(rule: str, *rights: str, args: Callable[[Any], list[object]] = lambda _scene: []) -> Entry:
    return Entry(rule, rights, "get", args)


def _post(
    rule: str,
    *rights: str,
    args: Callable[[Any], list[object]] = lambda _scene: [],
    data: Callable[[Any], dict[str, object]] = lambda _scene: {},
) -> Entry:
    return Entry(rule, rights, "post", args, data)


def _lane(scene: Any) -> list[object]:
    return [scene.lane.name]


def _item(scene: Any) -> list[object]:
    return [scene.item.pk]


def _job(scene: Any) -> list[object]:
    return [scene.job.pk]


def _ticket(scene: Any) -> list[object]:
    return [scene.job.ticket_id]


def _outage(scene: Any) -> list[object]:
    return [scene.outage.pk]


def _endpoint(scene: Any) -> list[object]:
    return [scene.endpoint.pk]


def _policy(scene: Any) -> list[object]:
    return [scene.lane.name, 1]


def _none(scene: Any) -> list[object]:
    return [0]


BULK = ("requeue_item", "pull_job", "move_deadlines", "decide_item")
KEEPING = ("preserve_evidence", "erase_evidence", "report_evidence")
MATRIX: dict[str, Entry] = {
    "sign_in": _get(OPEN),
    "sign_out": _post(OPEN),
    "icon": _get(OPEN),
    "set_language": _post(OPEN),
    "signed_in": _get(SIGNED_IN),
    "preferences": _get(SIGNED_IN),
    "preferences_shown": _post(SIGNED_IN),
    "own_password": _get(SIGNED_IN),
    "board": _get(SOMEWHERE, "view_board"),
    "lane": _get(ON, "view_board", args=_lane),
    "lane_raise": _post(ON, "raise_stage", args=_lane),
    "lane_hold": _post(ON, "hold_lane", args=_lane),
    "lane_resume": _post(ON, "raise_stage", args=_lane),
    "lane_step_down": _post(ON, "raise_stage", args=_lane),
    "lane_cap": _post(ON, "raise_stage", args=_lane),
    "lane_policy": _post(ON, "force_policy", args=_lane, data=lambda scene: {"policy-to": scene.lane.policy_id}),
    "lane_recall": _get(ON, "recall_decision", args=_lane),
    "lane_accept": _post(ON, "raise_stage", args=_lane),
    "policy": _get(ON, "view_board", args=_policy),
    "policy_try": _post(ON, "force_policy", "add_policy", args=_policy),
    "outage_close": _post(ON, "manage_outage", args=_lane, data=lambda scene: {"outage-outage": scene.outage.pk}),
    "alerts": _get(SOMEWHERE, "view_board"),
    "alert_acknowledge": _post(ON, "hold_lane", args=lambda scene: [scene.alert.pk]),
    "outages": _get(SOMEWHERE, "view_board"),
    "outage_open": _get(SOMEWHERE, "manage_outage"),
    "outage": _get(ON, "view_board", args=_outage),
    "outage_json": _get(ON, "view_board", args=_outage),
    "outage_csv": _get(ON, "view_board", args=_outage),
    "outage_note": _post(ON, "manage_outage", args=_outage),
    "outage_hand_over": _post(ON, "manage_outage", args=_outage),
    "outage_close_here": _post(ON, "manage_outage", args=_outage),
    "desk": _get(SOMEWHERE, "decide_item", "view_board"),
    "desk_numbers": _get(SOMEWHERE, "lead_desk"),
    "desk_take_next": _post(SOMEWHERE, "decide_item"),
    "desk_pull": _post(ALL, "pull_job", "decide_item", args=lambda scene: [scene.waiting.pk]),
    "item": _get(ON, "decide_item", args=_item),
    "desk_take": _post(ON, "decide_item", args=_item),
    "item_decide": _post(ON, "decide_item", args=_item),
    "item_requeue": _post(ALL, "requeue_item", "decide_item", args=_item),
    "item_extend": _post(ON, "decide_item", args=_item),
    "item_give_back": _post(ON, "decide_item", args=_item),
    "item_hand_over": _post(ON, "decide_item", args=_item),
    "item_skip": _post(ON, "decide_item", args=_item),
    "item_escalate": _post(ON, "decide_item", args=_item),
    "item_look": _post(ALL, "view_restricted", "decide_item", "view_evidence", args=_item),
    "item_restrict": _post(ON, "decide_item", args=_item),
    "decision_take_back": Entry(OWN, ("decide_item",), "post", _none),
    "decision_correct": _post(ON, "lead_desk", args=lambda scene: [scene.decision.pk]),
    "jobs": _get(SOMEWHERE, "view_board"),
    "job": _get(ON, "view_board", args=_job),
    "job_appeal": _post(ON, "appeal_decision", args=_job),
    "job_move_deadline": _post(ON, "move_deadlines", args=_job),
    "bulk_acts": _get(SOMEWHERE, *BULK),
    "bulk_preview": Entry(OWN, BULK, "post"),
    "bulk_act": Entry(OWN, BULK, "get", _none),
    "bulk_entries": Entry(OWN, BULK, "get", _none),
    "bulk_confirm": Entry(OWN, BULK, "post", _none),
    "bulk_discard": Entry(OWN, BULK, "post", _none),
    "bulk_second": Entry(OWN, BULK, "post", _none),
    "bulk_stop": Entry(OWN, BULK, "post", _none),
    "deliveries": _get(SOMEWHERE, "manage_deliveries"),
    "delivery": _get(ON, "manage_deliveries", args=lambda scene: [scene.delivery.pk]),
    "delivery_replay": _post(ON, "manage_deliveries", args=lambda scene: [scene.delivery.pk]),
    "deliveries_replay": _get(SOMEWHERE, "manage_deliveries"),
    "endpoint_disable": _post(ON, "manage_deliveries", args=_endpoint),
    "endpoint_enable": _post(ON, "manage_deliveries", args=_endpoint),
    "endpoint_test": _post(ON, "manage_deliveries", args=_endpoint),
    "endpoint_try_now": _post(ON, "manage_deliveries", args=_endpoint),
    "endpoint_retire": _post(ON, "change_endpoint", args=_endpoint),
    "audit": _get(SOMEWHERE, "view_auditentry"),
    "audit_export": _get(SOMEWHERE, "view_auditentry", args=lambda _scene: ["csv"]),
    "keeping": _get(ON, *KEEPING, args=_ticket),
    "keeping_preserve": _post(ON, "preserve_evidence", args=_ticket),
    "keeping_lift": _post(ON, "preserve_evidence", args=lambda scene: [scene.job.ticket_id, scene.preserved.pk]),
    "keeping_unrestrict": _post(
        ALL, "view_restricted", "lead_desk", args=lambda scene: [scene.job.ticket_id, scene.job.evidence_id]
    ),
    "keeping_report": _post(ON, "report_evidence", args=_ticket),
    "keeping_erase": _post(ON, "erase_evidence", args=_ticket),
    "imports": _get(SOMEWHERE, "import_tickets"),
    "import": Entry(OWN, ("import_tickets",), "get", _none),
    "import_refused": Entry(OWN, ("import_tickets",), "get", _none),
    "import_settle": Entry(OWN, ("import_tickets",), "post", _none),
    "import_begin": Entry(OWN, ("import_tickets",), "post", _none),
    "import_change": Entry(OWN, ("import_tickets",), "post", _none),
    "import_stop": Entry(OWN, ("import_tickets",), "post", _none),
    "import_discard": Entry(OWN, ("import_tickets",), "post", _none),
}

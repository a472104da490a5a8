"""Control over HTTP: what the stand-in does next, and what it has seen."""

import json
from typing import TYPE_CHECKING, Any

from reviewboard.model_server.conditions import FAULTS, Condition, ConditionFault, read_script
from reviewboard.model_server.http import Request, response

if TYPE_CHECKING:
    from reviewboard.model_server.server import ModelServer

SHOWN_CALLS = 1000


def answer(server: "ModelServer", request: Request) -> bytes:
    """GET /: the condition and counts. PUT /: a condition. POST /script: steps. GET, DELETE /calls: what came in."""
    try:
        return _routed(server, request)
    except (ConditionFault, json.JSONDecodeError) as fault:
        return response(422, {"error": str(fault)})


def _routed(server: "ModelServer", request: Request) -> bytes:
    match request.method, request.path:
        case "GET", "/":
            return response(200, state(server))
        case "PUT", "/":
            server.set(Condition.read(request.json()))
            return response(200, state(server))
        case "POST", "/script":
            data = request.json()
            is_repeated = isinstance(data, dict) and bool(data.get("repeat"))
            server.play(read_script(data.get("steps") if isinstance(data, dict) else data), repeat=is_repeated)
            return response(200, state(server))
        case "GET", "/calls":
            return response(200, [_shown(call) for call in list(server.calls)[-SHOWN_CALLS:]])
        case "DELETE", "/calls":
            server.calls.clear()
            server.most_at_once = server.at_once
            return response(200, state(server))
        case "GET", "/faults":
            return response(200, FAULTS)
    return response(404, {"error": "There is GET /, PUT /, POST /script, GET /calls, DELETE /calls, GET /faults."})


def state(server: "ModelServer") -> dict[str, Any]:
    now = server.condition
    return {
        "fault": now.fault,
        "latency": now.latency,
        "share": now.share,
        "retry_after": now.retry_after,
        "received": server.received,
        "at_once": server.at_once,
        "most_at_once": server.most_at_once,
        "port": server.port,
    }


def _shown(call: Any) -> dict[str, Any]:
    return {
        "number": call.number,
        "path": call.path,
        "idempotency_key": call.idempotency_key,
        "fence": call.fence,
        "had_key": call.had_key,
        "fault": call.fault,
        "body": call.body,
    }

"""How the stand-in behaves: a fault, its share of the calls, the latency; and scripts that change it as they go on."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Self

#: Fault -> what a caller meets. "status" faults answer with that status; the others are done by name.
FAULTS: dict[str, str] = {
    "up": "answers as asked",
    "wrong": "answers quickly, with every probability turned round",
    "down": "refuses connections, and cuts those that are open",
    "hang": "takes the request and never answers",
    "reset": "takes the request and cuts the connection",
    "overloaded": "429 with Retry-After",
    "busy": "503 with Retry-After",
    "quota": "429 that says that the account's quota is used up",
    "error": "500",
    "bad_gateway": "502",
    "gateway_timeout": "504",
    "unauthorized": "401",
    "forbidden": "403",
    "not_found": "404",
    "unsupported": "501",
    "redirect": "307 to another address",
    "limit": "400 that names the most questions",
    "rejects": "400 for the content",
    "refuses": "refuses every question",
    "garbage": "200 with a page of HTML",
    "empty": "200 with no body",
    "malformed": "200 with JSON that breaks off",
    "truncated": "200 with half of the announced body, then cuts",
    "huge": "200 with a body of 64 MiB",
    "drip": "200, a byte at a time",
    "drip_headers": "the headers, a byte at a time",
    "miscount": "one answer less than was asked",
    "extra": "one answer more than was asked",
    "disorder": "the answers in the opposite order",
    "unknown": "an option that was not offered",
    "text_scores": "texts where numbers belong",
    "nan": "NaN where numbers belong",
}


class ConditionFault(ValueError):
    """A condition or script that cannot be read; the message says which field."""


@dataclass(frozen=True, slots=True)
class Condition:
    """What the next calls meet. `share`: of every hundred calls, so many percent meet the fault, spread evenly."""

    fault: str = "up"
    latency: float = 0.0
    """Seconds before the answer, for calls that the fault does not end otherwise."""
    share: float = 1.0
    retry_after: str = "2"

    @classmethod
    def read(cls, data: object) -> Self:
        """From JSON: {"fault", "latency", "share", "retry_after"}, each optional. Raises ConditionFault."""
        if not isinstance(data, Mapping):
            raise ConditionFault("A condition is an object with fault, latency, share and retry_after.")
        known = {field.name for field in fields(cls)}
        unknown = sorted(str(name) for name in data.keys() - known)
        if unknown:
            raise ConditionFault(f"{unknown[0]}: a condition has no such field.")
        fault = data.get("fault", "up")
        if fault not in FAULTS:
            raise ConditionFault(f"fault: {fault!r} is none of {', '.join(FAULTS)}.")
        return cls(
            fault=str(fault),
            latency=_number(data, "latency", 0.0, most=600.0),
            share=_number(data, "share", 1.0, most=1.0),
            retry_after=str(data.get("retry_after", "2"))[:400],
        )

    def is_met_by(self, number: int) -> bool:
        """Whether call `number` (from 1) meets the fault: the same calls in every run."""
        return int(number * self.share + 1e-9) > int((number - 1) * self.share + 1e-9)


@dataclass(frozen=True, slots=True)
class Step:
    """A condition that lasts `seconds`, or for `calls` answered calls; both None: to the end."""

    condition: Condition
    seconds: float | None = None
    calls: int | None = None


def read_script(data: object) -> list[Step]:
    """A list of conditions, each with "for" (seconds) or "calls"; the last may have neither. Raises ConditionFault."""
    if not isinstance(data, list) or not 1 <= len(data) <= 1000:
        raise ConditionFault("A script is a list of 1 to 1000 steps.")
    return [_step(number, entry) for number, entry in enumerate(data)]


def _step(number: int, entry: object) -> Step:
    if not isinstance(entry, Mapping):
        raise ConditionFault(f"Step {number}: an object is needed.")
    rest = {name: value for name, value in entry.items() if name not in ("for", "calls")}
    seconds = _number(entry, "for", 0.0, most=86_400.0) if "for" in entry else None
    calls = int(_number(entry, "calls", 1.0, most=1e6)) if "calls" in entry else None
    return Step(Condition.read(rest), seconds, calls)


def _number(data: Mapping[str, object], name: str, default: float, *, most: float) -> float:
    value = data.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
        raise ConditionFault(f"{name}: a number from 0 to {most:g} is needed.")
    return float(value)

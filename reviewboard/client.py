"""A typed client of the HTTP API, for sources and consumers in Python. It needs httpx2 and nothing of this project.

    from reviewboard.client import Client, Ticket

    with Client("https://board.example", "rbk_…") as board:
        board.send(Ticket(lane="posts", ticket="post-2748", revision="1", evidence={"text": "…"}))
        for message in board.decisions(after=cursor):
            handle(message)

Every call has a time limit. One that got no answer, 429 or 5xx is made again after a rest that grows, because that is
safe: a revision is stored once however often it is sent, and the other acts say the same the second time.
"""

import json
import random
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import TracebackType
from typing import Any, Self

import httpx2

#: HTTP statuses after which the same call may well succeed.
PASSING = frozenset({429, 500, 502, 503, 504})
#: Seconds.
TIMEOUT = 10.0
LONGEST_REST = 60.0
#: Of one call with many tickets: what has to be sent anew when a connection breaks.
LINES_A_CALL = 1_000
BYTES_A_CALL = 1024 * 1024
NDJSON = {"Content-Type": "application/x-ndjson"}


class ApiError(Exception):
    """An answer that is no success, or none at all (`status` 0). `code` is stable; `field` names what is wrong."""

    def __init__(
        self, status: int, code: str, detail: str, *, field: str = "", problem: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(f"{code}: {detail}" + (f" ({field})" if field else ""))
        self.status = status
        self.code = code
        self.detail = detail
        self.field = field
        self.problem = dict(problem or {})


@dataclass(frozen=True, slots=True)
class Ticket:
    """One revision of one ticket. What is None comes from its lane. Times are aware, or texts such as "+30m"."""

    lane: str
    ticket: str
    revision: str
    evidence: Any
    source: str | None = None
    deadline: datetime | str | None = None
    submitted_at: datetime | str | None = None
    severity: int | None = None
    category: str | None = None
    source_kind: str | None = None
    exposure: str | None = None
    deadline_kind: str | None = None
    restricted: bool | None = None
    replaces: str | None = None

    def as_json(self) -> dict[str, Any]:
        """What is sent. Raises ValueError for a time without a zone, which would mean another one elsewhere."""
        values = {name: _plain(getattr(self, name)) for name in self.__slots__}
        return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Sent:
    """What became of a ticket: `stored`, `known` or `superseded`; of one among many also `revision_conflict` or
    `refused`, with the field and the reason."""

    outcome: str
    ticket: str = ""
    revision: str = ""
    current_revision: str = ""
    field: str = ""
    reason: str = ""
    #: Its place among those that were handed over, from 0.
    place: int = 0

    @property
    def is_in(self) -> bool:
        return self.outcome in ("stored", "known", "superseded")


@dataclass(frozen=True, slots=True)
class Message:
    """One message. Handle each `id` once: after a break you may be given it again. `next` is the cursor after it."""

    id: str
    number: int
    type: str
    timestamp: datetime
    data: Mapping[str, Any]
    seq: int | None
    next: int


@dataclass(slots=True)
class Client:
    """A connection to one board with one key. `tries`: how often a call is made before it fails."""

    url: str
    key: str = field(repr=False)
    timeout: float = TIMEOUT
    tries: int = 6
    first_rest: float = 0.5
    _http: httpx2.Client = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._http = httpx2.Client(
            base_url=f"{self.url.rstrip('/')}/api/v1",
            headers={"Authorization": f"Bearer {self.key}"},
            timeout=self.timeout,
            follow_redirects=False,
            trust_env=False,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    # --- In -------------------------------------------------------------------------------------------------------

    def send(self, ticket: Ticket) -> Sent:
        """Send one ticket. Raises ApiError: `revision_conflict` if another revision is current."""
        told = self._call("POST", "/tickets", json=ticket.as_json())
        return Sent(told["outcome"], told["ticket"], told["revision"], told["current_revision"])

    def send_many(self, tickets: Iterable[Ticket]) -> Iterator[Sent]:
        """Send any number of tickets, a call for each thousand; an answer for each, in order. Nothing is sent that is
        not asked for: iterate to the end.

        Raises ApiError when a call fails for good; what went in by then stays in."""
        place = 0
        for lines in _calls(ticket.as_json() for ticket in tickets):
            yield from self._send_lines(lines, place)
            place += len(lines)

    def _send_lines(self, lines: list[bytes], place: int) -> list[Sent]:
        """One call, made again until it tells of every line."""
        for tried in range(1, self.tries + 1):
            response = self._answered("POST", "/tickets/bulk", content=b"".join(lines), headers=NDJSON)
            told = _lines(response.content)
            answers = [one for one in told if "line" in one]
            if len(answers) == len(lines) and told[-1].get("complete"):
                return [_sent(one, place) for one in answers]
            # A key whose rate is used up is told when to go on.
            self._rest(tried, told[-1].get("retry_after") if told else None)
        end = told[-1] if told else {}
        raise ApiError(200, end.get("code", "answer_incomplete"), end.get("reason", "Not every line was answered."))

    def withdraw(self, ticket: str, *, source: str | None = None) -> None:
        """The content is gone at the source. Raises ApiError: `not_found`."""
        self._call("POST", "/tickets/withdraw", json=_given(ticket=ticket, source=source))

    def appeal(self, ticket: str, statement: str, *, source: str | None = None, revision: str | None = None) -> str:
        """Against the decision in force: `opened`, or `known` where it was appealed against before. Raises ApiError:
        `not_possible`."""
        body = _given(ticket=ticket, source=source, statement=statement, revision=revision)
        return str(self._call("POST", "/tickets/appeal", json=body)["outcome"])

    def erase(self, ticket: str, ground: str, *, source: str | None = None) -> str:
        """Blank the content: `erased` or `already`. Raises ApiError: `preserved` while law keeps it."""
        body = _given(ticket=ticket, source=source, ground=ground)
        return str(self._call("POST", "/tickets/erase", json=body)["outcome"])

    # --- Out ------------------------------------------------------------------------------------------------------

    def ticket(self, ticket: str, *, source: str | None = None) -> dict[str, Any]:
        """Its state, its decision and where it waits. Raises ApiError: `not_found`."""
        return self._call("GET", "/tickets", params=_given(ticket=ticket, source=source))

    def decisions(self, *, after: int = 0, page: int = 500) -> Iterator[Message]:
        """Decisions, and what became of them later, up to the present moment. Keep `next` of what you have handled,
        and begin there next time."""
        return self._messages("/decisions", after, page, {})

    def messages(self, *, after: int = 0, kinds: Iterable[str] = (), page: int = 500) -> Iterator[Message]:
        """Messages of these kinds, or of all."""
        return self._messages("/messages", after, page, {"kind": list(kinds)})

    def _messages(self, path: str, after: int, page: int, params: dict[str, Any]) -> Iterator[Message]:
        while True:
            told = self._call("GET", path, params={**params, "after": after, "limit": page})
            for one in told["messages"]:
                yield Message(**{**one, "timestamp": datetime.fromisoformat(one["timestamp"])}, next=one["number"])
            after = told["next"]
            if not told["more"]:
                return

    def lane(self, name: str) -> dict[str, Any]:
        """A lane's health. Raises ApiError: `not_found`."""
        return self._call("GET", f"/lanes/{name}")

    def lanes(self) -> Iterator[dict[str, Any]]:
        """The health of every lane of the key."""
        after: str | None = None
        while True:
            told = self._call("GET", "/lanes", params=_given(after=after))
            yield from told["lanes"]
            after = told["next"]
            if after is None:
                return

    # --- The wire -------------------------------------------------------------------------------------------------

    def _call(self, method: str, path: str, **request: Any) -> dict[str, Any]:
        response = self._answered(method, path, **request)
        try:
            content: dict[str, Any] = response.json()
        except ValueError as error:
            # Something between here and there answered.
            raise ApiError(response.status_code, "answer_unreadable", "The answer is no JSON.") from error
        return content

    def _answered(self, method: str, path: str, **request: Any) -> httpx2.Response:
        """The answer of a call, made anew while it may help. Raises ApiError."""
        for tried in range(1, self.tries + 1):
            try:
                response = self._http.request(method, path, **request)
            except httpx2.TransportError as error:
                fault = ApiError(0, "no_answer", f"{type(error).__name__}: {error}")
                wanted = None
            else:
                if response.is_success:
                    return response
                fault = _fault(response)
                if response.status_code not in PASSING:
                    raise fault
                wanted = _seconds(response.headers.get("Retry-After"))
            if tried == self.tries:
                raise fault
            self._rest(tried, wanted)
        raise AssertionError("a client tries at least once")

    def _rest(self, tried: int, wanted: float | None) -> None:
        """Twice as long each time, less a random part so that many clients do not come back at once."""
        own = min(self.first_rest * 2 ** (tried - 1), LONGEST_REST) * random.uniform(0.5, 1.0)  # noqa: S311  spreads rests
        time.sleep(min(max(own, wanted or 0.0), LONGEST_REST))


def _calls(tickets: Iterable[dict[str, Any]]) -> Iterator[list[bytes]]:
    lines: list[bytes] = []
    size = 0
    for ticket in tickets:
        line = json.dumps(ticket, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode() + b"\n"
        if lines and (len(lines) >= LINES_A_CALL or size + len(line) > BYTES_A_CALL):
            yield lines
            lines, size = [], 0
        lines.append(line)
        size += len(line)
    if lines:
        yield lines


def _lines(content: bytes) -> list[dict[str, Any]]:
    """The whole lines of an answer. At line feeds alone: an id may hold U+2028, at which splitlines parts it, too."""
    told: list[dict[str, Any]] = []
    for line in content.split(b"\n")[:-1]:
        try:
            told.append(json.loads(line))
        except ValueError:
            break
    return told


def _sent(told: dict[str, Any], place: int) -> Sent:
    names = ("outcome", "ticket", "revision", "current_revision", "field", "reason")
    return Sent(**{name: told[name] for name in names if name in told}, place=place + told["line"] - 1)


def _fault(response: httpx2.Response) -> ApiError:
    status = response.status_code
    try:
        problem = response.json()
    except ValueError:
        problem = None
    if not isinstance(problem, dict):
        # Something between here and there answered.
        return ApiError(status, f"http_{status}", response.reason_phrase)
    return ApiError(
        status,
        str(problem.get("code", f"http_{status}")),
        str(problem.get("detail", "")),
        field=str(problem.get("field", "")),
        problem=problem,
    )


def _seconds(sent: str | None) -> float | None:
    return float(sent) if sent is not None and sent.isascii() and sent.isdigit() else None


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError("a time without a zone")
        return value.isoformat()
    return value

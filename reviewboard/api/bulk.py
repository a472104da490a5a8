"""Many tickets in one call: a line each in, an answer each out, in memory that does not grow with them."""

import contextvars
import io
import json
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, BinaryIO

import structlog
from django.db import DatabaseError, connections
from django.http import HttpRequest, StreamingHttpResponse
from django.utils.translation import gettext as _
from ninja import Router

from queue_core import api_keys
from queue_core.clock import DATABASE_CLOCK
from queue_core.errors import InvalidJob, RevisionConflict
from queue_core.models.api_keys import KeyScope
from queue_core.states import AddOutcome
from queue_core.ticket_file import Line, lines, parse
from queue_core.ticket_import import REFUSED, Answer, Entry, batches
from reviewboard.api.admission import Admission
from reviewboard.api.bodies import NDJSON, length_of, open_body
from reviewboard.api.described import failures, lines_of
from reviewboard.api.keys import Key, key_of
from reviewboard.api.problems import Problem
from reviewboard.api.spool import Spool
from reviewboard.api.tickets import conflict

log = structlog.get_logger(__name__)
router = Router(tags=["tickets"])

MOST_BYTES = 1024 * 1024 * 1024
MOST_LINES = 1_000_000
#: Bytes of a body that is taken whole before the first answer goes out, without a thread.
READ_AT_ONCE = 1024 * 1024
#: Longer bodies that one process takes at once. Each keeps one of its threads as long as its client likes, and people
#: need the others.
MOST_AT_ONCE = 4
#: Seconds that a body is kept waiting by its key's rate; where that is not enough, it ends there.
LONGEST_WAIT = 5.0

_places = threading.BoundedSemaphore(MOST_AT_ONCE)


@router.post(
    "/bulk",
    auth=Key(KeyScope.SEND),
    summary="Send many tickets",
    response=failures(411, 413, 415),
    openapi_extra=lines_of(NDJSON)
    | {"responses": {200: {"description": "An answer a line", "content": {NDJSON[0]: {"schema": {"type": "string"}}}}}},
)
def send_many(request: HttpRequest) -> StreamingHttpResponse:
    """Newline-delimited JSON, each line as the call for one ticket takes it; at most a million lines and 1 GiB. Send it
    with Content-Length or in chunks.

    The answer has a line for each that is not blank, in order, while the body is still coming: `line`, `outcome`
    (`stored`, `known`, `superseded`, `revision_conflict`, `refused`), `ticket` and `revision`, and where it did not go
    in `field` and `reason`. The last one has `end`: `complete` only if the whole body was taken. Where it is missing
    or says otherwise, send the lines without an answer again; those that went in are `known`. Each 500 lines count as
    a call of the key: a body that is too fast is slowed down, or ends with `rate_limited` and `retry_after` seconds."""
    stream, promised = open_body(request, NDJSON, most=MOST_BYTES), length_of(request)
    is_short = promised is not None and promised <= READ_AT_ONCE
    if is_short:
        stream = io.BytesIO(_what_came(stream, promised or 0))
    else:
        _take_place()
    taking = _Taking(Admission(key_of(request)), stream, promised, Spool(), request.META.get("REMOTE_ADDR") or None)
    if is_short:
        taking.run()
        answers: Iterator[bytes] = taking.spool.read()
    else:
        answers = _Apart(taking)
        # With this call's language and address; with a connection of its own.
        context = contextvars.copy_context()
        threading.Thread(target=context.run, args=[taking.run_apart], name="bulk", daemon=True).start()
    response = StreamingHttpResponse(answers, content_type=NDJSON[0])
    # A proxy that collects the answer would keep the client from seeing how far it got.
    response.headers["X-Accel-Buffering"] = "no"
    return response


def _what_came(stream: BinaryIO, promised: int) -> bytes:
    """A short body, or what came of it before the connection broke."""
    parts: list[bytes] = []
    left = promised
    try:
        while left and (part := stream.read(min(left, 64 * 1024))):
            parts.append(part)
            left -= len(part)
    except OSError:
        pass
    return b"".join(parts)


def _take_place() -> None:
    """Raises Problem where all places are taken."""
    if not _places.acquire(blocking=False):
        detail = _("So many bodies of lines are being taken already: try again in a moment.")
        raise Problem("unavailable", detail, headers={"Retry-After": "5"})


class _Apart(Iterator[bytes]):
    """The answers to a long body. They give back the place that was taken when they end, whoever ends them."""

    def __init__(self, taking: "_Taking") -> None:
        self._has_place = True
        self._parts = taking.spool.read()

    def __next__(self) -> bytes:
        try:
            return next(self._parts)
        except StopIteration:
            self.close()
            raise

    def close(self) -> None:
        if self._has_place:
            self._has_place = False
            self._parts.close()
            _places.release()

    def __del__(self) -> None:
        # A server that loses its client may not say so.
        self.close()


@dataclass(slots=True)
class _Counted:
    """The client's stream, with how much came. Broken off, it just ends: what came in stays in. It ends, too, one byte
    after the most that is taken, since a body in chunks promises no length that could be looked at before."""

    stream: BinaryIO
    size: int = 0

    def readline(self, most: int = -1) -> bytes:
        left = MOST_BYTES + 1 - self.size
        try:
            part = self.stream.readline(left if most < 0 else min(most, left))
        except OSError:
            return b""
        self.size += len(part)
        return part


@dataclass(slots=True)
class _Taking:
    """One body on its way in. `promised` is its length where one was given, `address` the client's."""

    admission: Admission
    stream: BinaryIO
    promised: int | None
    spool: Spool
    address: str | None
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys([*AddOutcome, REFUSED], 0))

    def run_apart(self) -> None:
        try:
            self.run()
        finally:
            connections.close_all()

    def run(self) -> None:
        """Take all lines. Whatever happens, the last answer says how far it got."""
        counted = _Counted(self.stream)
        stopped: dict[str, Any] = {}
        try:
            stopped = self._take(counted)
        except DatabaseError:
            log.exception("bulk_stopped")
            stopped = {"code": "unavailable", "reason": _("The service cannot answer now.")}
        except Exception:
            # The answer has begun: no status can tell of it any more.
            log.exception("bulk_broke")
            stopped = {"code": "internal_error", "reason": _("Something broke here.")}
        finally:
            self._end(counted.size, stopped)

    def _take(self, counted: _Counted) -> dict[str, Any]:
        found = lines(counted)  # type: ignore[arg-type]
        for batch in batches(islice(found, MOST_LINES)):
            # The call has paid for the first one.
            if any(self.counts.values()) and (spent := self._pay()):
                return spent
            answers = self._answers(batch)
            text = b"".join(_as_line(line.number, *answers[line.number]) for line in batch)
            for answer, _ticket in answers.values():
                self.counts[outcome_of(answer)] += 1
            if not self.spool.write(text):
                return {"code": "given_up", "reason": ""}
        if next(found, None) is not None:
            reason = _("More than %(most)d lines: the rest was not read.") % {"most": MOST_LINES}
            return {"code": "too_many_lines", "reason": reason}
        if counted.size > MOST_BYTES:
            reason = _("The body is longer than %(most)d bytes.") % {"most": MOST_BYTES}
            return {"code": "body_too_large", "reason": reason}
        return {}

    def _pay(self) -> dict[str, Any]:
        """One call more of the key's allowance, waited for. What is said where that would take too long."""
        key, until = self.admission.key, time.monotonic() + LONGEST_WAIT
        while True:
            allowance = api_keys.charge(key, now=DATABASE_CLOCK.now(), address=self.address)
            if not allowance.is_spent:
                return {}
            wait = allowance.wait.total_seconds()
            if time.monotonic() + wait > until:
                reason = _("This key may make %(rate)d calls per minute.") % {"rate": key.rate}
                return {"code": "rate_limited", "reason": reason, "retry_after": api_keys.seconds(allowance.wait)}
            time.sleep(wait)

    def _answers(self, batch: Sequence[Line]) -> dict[int, tuple[Answer, Entry | None]]:
        now = DATABASE_CLOCK.now()
        entries: list[Entry] = []
        answers: dict[int, tuple[Answer, Entry | None]] = {}
        for line in batch:
            try:
                record = parse(line, now=now)
                entries.append(Entry(line.number, self.admission.ticket(record), record.replaces))
            except InvalidJob as fault:
                answers[line.number] = (fault, None)
        taken = self.admission.intake().take(entries)
        return answers | {entry.line: (taken[entry.line], entry) for entry in entries}

    def _end(self, size: int, stopped: dict[str, Any]) -> None:
        if not stopped and self.promised is not None and size < self.promised:
            reason = _("%(sent)d of %(promised)d bytes came.") % {"sent": size, "promised": self.promised}
            stopped = {"code": "body_incomplete", "reason": reason}
        end = {"end": True, "complete": not stopped, "lines": sum(self.counts.values()), **self.counts, **stopped}
        self.spool.write(_json(end))
        self.spool.complete()


def outcome_of(answer: Answer) -> str:
    if isinstance(answer, InvalidJob):
        return REFUSED
    return AddOutcome.REVISION_CONFLICT.value if isinstance(answer, RevisionConflict) else answer.value


def _as_line(number: int, answer: Answer, entry: Entry | None) -> bytes:
    told: dict[str, Any] = {"line": number, "outcome": outcome_of(answer)}
    if entry is not None:
        told |= {"ticket": entry.ticket.external_id, "revision": entry.ticket.revision}
    if isinstance(answer, InvalidJob):
        told |= {"field": answer.field, "reason": str(answer)}
    elif isinstance(answer, RevisionConflict):
        problem = conflict(answer)
        told |= {"field": problem.members["field"], "reason": problem.detail, "current_revision": answer.current}
    return _json(told)


def _json(content: dict[str, Any]) -> bytes:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"

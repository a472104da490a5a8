"""The one adapter of all wires over a network: many calls at once in one event loop, each with its own answer."""

import asyncio
import hashlib
import queue
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Protocol

import httpx2
from django.utils.translation import gettext_noop

from queue_core.clock import DATABASE_CLOCK, Clock
from queue_core.connections.answers import Answer, InputRejected, Misconfigured, MisconfiguredKind, Verdict
from queue_core.connections.base import Call, Health
from queue_core.connections.evidence_text import NoText
from queue_core.connections.network.content import Content, content_of
from queue_core.connections.network.loop import call_loop, warm
from queue_core.connections.network.outcomes import SENTENCES, misconfigured
from queue_core.connections.network.scrubbing import scrubbed
from queue_core.connections.network.secret import Secret, key_named
from queue_core.connections.network.sending import BadStatus, Terms, exchange
from queue_core.connections.network.transport import BEARER, KeyPlace
from queue_core.questions import Question

#: A call ends by itself this much before its limit, so that its own answer says how, instead of a plain timeout.
BEFORE_LIMIT = 0.05
FENCE = "X-Review-Fence"
NO_QUESTIONS = gettext_noop(
    "The policy asks no question, and this kind of connection needs one. Make a version that does."
)


@dataclass(frozen=True, slots=True)
class Parcel:
    """The calls of one request, with what of each is sent."""

    calls: tuple[Call, ...]
    contents: tuple[Content, ...] = field(repr=False)

    @property
    def headers(self) -> dict[str, str]:
        """The key under which the server may know a repeat, and the fence of each call beside it."""
        return {
            "Idempotency-Key": _key_of(self.calls),
            FENCE: ",".join(str(call.fence) for call in self.calls),
        }

    def halves(self) -> "tuple[Parcel, Parcel]":
        middle = len(self.calls) // 2
        return (
            Parcel(self.calls[:middle], self.contents[:middle]),
            Parcel(self.calls[middle:], self.contents[middle:]),
        )


class Wire(Protocol):
    """How one server is spoken to. It knows no threads, no keys and no outcomes but what an answer says."""

    @property
    def most_together(self) -> int:
        """How many calls one request may carry."""
        ...

    @property
    def asks(self) -> bool:
        """Whether the policy's questions are sent."""
        ...

    @property
    def sends_images(self) -> bool: ...

    def categories(self, questions: Sequence[Question]) -> Sequence[str] | None:
        """The names of the scores that an answer to these questions brings; None where only the server knows."""
        ...

    def load(self) -> None:
        """Load what calls need. The first time may be slow, and no call's time should pass meanwhile."""
        ...

    def share_of_ours(self, parcel: Parcel) -> float:
        """How much of the request, from 0 to 1, is not the tickets' own."""
        ...

    async def ask(self, client: httpx2.AsyncClient, parcel: Parcel, terms: Terms) -> Sequence[Answer]:
        """An answer for each call of the parcel, in order. Raises what `exchange` knows."""
        ...

    async def look(self, client: httpx2.AsyncClient, terms: Terms) -> str:
        """A small look that costs nothing: what to say of a server that is well. Raises what `exchange` knows."""
        ...


@dataclass(slots=True)
class NetworkConnection:
    """Keeps `connections.base.Connection` for any wire."""

    wire: Wire
    key_name: str = ""
    place: KeyPlace = BEARER
    at_once: int = 100
    allow_restricted: bool = False
    clock: Clock = DATABASE_CLOCK
    _moment: tuple[datetime, float] | None = field(default=None, init=False)

    @property
    def asks(self) -> bool:
        return self.wire.asks

    def categories(self, questions: Sequence[Question]) -> Sequence[str] | None:
        return self.wire.categories(questions)

    def prepare(self) -> None:
        warm()
        self.wire.load()
        # Calls run where no database may be touched; from here on the time is counted on.
        self._moment = (self.clock.now(), time.monotonic())

    def review(self, calls: Sequence[Call]) -> Iterator[tuple[Call, Answer]]:
        secret = self._key()
        if not isinstance(secret, Secret):
            return iter([(call, misconfigured(secret)) for call in calls])
        ready: list[tuple[Call, Answer]] = []
        packed: list[tuple[Call, Content]] = []
        for call in calls:
            found = self._packed(call)
            if isinstance(found, Content):
                packed.append((call, found))
            else:
                ready.append((call, found))
        return self._answers(ready, _parcels(packed, self.wire.most_together), secret)

    def _key(self) -> Secret | MisconfiguredKind:
        """The key, or why there is none that could be sent."""
        secret = key_named(self.key_name)
        if secret is None:
            return MisconfiguredKind.NO_KEY
        return secret if secret.is_sendable else MisconfiguredKind.KEY_MALFORMED

    def _packed(self, call: Call) -> Content | Answer:
        if self.wire.asks and not call.questions:
            return Misconfigured(MisconfiguredKind.LIMIT, NO_QUESTIONS)
        try:
            return content_of(call.evidence, sends_images=self.wire.sends_images)
        except NoText as problem:
            return InputRejected(str(problem))

    def _answers(
        self, ready: list[tuple[Call, Answer]], parcels: list[Parcel], secret: Secret
    ) -> Iterator[tuple[Call, Answer]]:
        yield from ready
        arrivals: queue.SimpleQueue[tuple[Call, Answer]] = queue.SimpleQueue()
        running = call_loop()
        tasks = [running.submit(self._deliver(parcel, secret, arrivals)) for parcel in parcels]
        try:
            for _ in range(sum(len(parcel.calls) for parcel in parcels)):
                yield arrivals.get()
        finally:
            for task in tasks:
                task.cancel()

    async def _deliver(
        self, parcel: Parcel, secret: Secret, arrivals: "queue.SimpleQueue[tuple[Call, Answer]]"
    ) -> None:
        began = time.monotonic()
        limit = min(call.time_limit for call in parcel.calls).total_seconds()
        ends = began + max(limit - BEFORE_LIMIT, limit / 2)
        for call, answer in await self._settle(parcel, secret, ends):
            took = timedelta(seconds=time.monotonic() - began)
            arrivals.put((call, answer if answer.latency is not None else replace(answer, latency=took)))

    async def _settle(self, parcel: Parcel, secret: Secret, ends: float) -> list[tuple[Call, Answer]]:
        """A request that was refused as a whole was not carried out: its halves are asked until one text is guilty."""
        limit = timedelta(seconds=max(ends - time.monotonic(), 0.001))
        terms = Terms(limit, self._now(), secret, self.wire.share_of_ours(parcel))
        client = call_loop().clients.get(secret, self.place)
        found = await exchange(lambda: self.wire.ask(client, parcel, terms), terms)
        if isinstance(found, InputRejected) and len(parcel.calls) > 1:
            halves = await asyncio.gather(*(self._settle(half, secret, ends) for half in parcel.halves()))
            return [pair for half in halves for pair in half]
        answers = found if isinstance(found, Sequence) else [found] * len(parcel.calls)
        return [(call, scrubbed(answer, secret)) for call, answer in zip(parcel.calls, answers, strict=True)]

    def _now(self) -> datetime:
        assert self._moment is not None, "prepare was not called"
        moment, counted_from = self._moment
        return moment + timedelta(seconds=time.monotonic() - counted_from)

    def check_health(self, time_limit: timedelta) -> Health:
        secret = self._key()
        if not isinstance(secret, Secret):
            return Health(False, SENTENCES[secret])
        began = time.monotonic()
        seen: queue.SimpleQueue[Health] = queue.SimpleQueue()
        task = call_loop().submit(self._look(secret, time_limit, seen))
        try:
            found = seen.get(timeout=time_limit.total_seconds())
        except queue.Empty:
            task.cancel()
            return Health(False, "The model server does not answer.", latency=time_limit)
        return replace(found, latency=timedelta(seconds=time.monotonic() - began))

    async def _look(self, secret: Secret, time_limit: timedelta, seen: "queue.SimpleQueue[Health]") -> None:
        terms = Terms(time_limit * 0.95, self._now(), secret)
        client = call_loop().clients.get(secret, self.place)
        found = await exchange(lambda: self.wire.look(client, terms), terms)
        seen.put(Health(True, secret.scrub(found)) if isinstance(found, str) else _ill(scrubbed(found, secret)))


def _ill(answer: Answer) -> Health:
    if isinstance(answer, InputRejected | Verdict):
        return Health(True, "")
    return Health(False, getattr(answer, "detail", ""))


async def look_at_models(client: httpx2.AsyncClient, url: str, terms: Terms) -> str:
    """GET a list that costs nothing. A server without one that answers so is well all the same."""
    response = await client.get(url, timeout=terms.timeout)
    if response.status_code in (404, 405, 501):
        return f"It answers (HTTP {response.status_code} to the look)."
    if response.status_code >= 300:
        raise BadStatus(response.content)
    return "It answers."


def _parcels(packed: list[tuple[Call, Content]], most: int) -> list[Parcel]:
    """Together only what has the same time, and what no images make heavy."""
    parcels = []
    for start in range(0, len(packed), most):
        part = packed[start : start + most]
        parcels.append(Parcel(tuple(call for call, _ in part), tuple(content for _, content in part)))
    return parcels


def _key_of(calls: Sequence[Call]) -> str:
    if len(calls) == 1:
        return calls[0].idempotency_key
    return "review-" + hashlib.sha256("\n".join(call.idempotency_key for call in calls).encode()).hexdigest()

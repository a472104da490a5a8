"""What goes over the wire, as the OpenAPI document describes it. Tickets themselves are judged by `ticket_fields`."""

from datetime import datetime
from typing import Annotated, Any, Literal

from ninja import Field, Schema
from pydantic import ConfigDict, StringConstraints

from queue_core.models.preservation import MAX_GROUND
from queue_core.models.tickets import MAX_ID, MAX_SOURCE
from queue_core.states import DeadlineKind, Exposure, SourceKind
from reviewboard.api.problems import CODES

#: Not blank, and without NUL, which no text of the database holds: in an address it comes as %00.
SAYS_SOMETHING = r"^[^\x00]*[^\s\x00][^\x00]*$"
Id = Annotated[str, StringConstraints(min_length=1, max_length=MAX_ID, pattern=SAYS_SOMETHING)]
Source = Annotated[str, StringConstraints(min_length=1, max_length=MAX_SOURCE, pattern=SAYS_SOMETHING)]
LaneName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?$")]
#: Written here as it is judged by `ticket_fields`.
Moment = Annotated[
    str,
    Field(
        description="ISO 8601 with a zone, or relative to now: -90s, +30m, +24h, +2d.",
        json_schema_extra={
            "pattern": r"^([+-][0-9]{1,9}[smhd]|[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:.*)$",
        },
    ),
]


def _one_of(values: list[str]) -> Any:
    return Annotated[str, Field(json_schema_extra={"enum": [*values]})]


class Closed(Schema):
    """A body whose every field is known: a misspelt one is refused, not passed over."""

    model_config = ConfigDict(extra="forbid")


class ProblemOut(Schema):
    """Problem details (RFC 9457)."""

    type: str
    title: str
    status: int
    code: str = Field(json_schema_extra={"enum": [*sorted(CODES)]})
    detail: str
    field: str | None = Field(None, description="The field that is wrong.")
    limit: int | None = Field(None, description="The limit that was passed, in `unit`.")
    unit: str | None = None
    current_revision: str | None = None
    until: str | None = Field(None, description="How long content is kept.")
    reason: str | None = Field(None, description="Why a thing is not possible, as a code.")
    accepted: list[str] | None = None


class TicketIn(Closed):
    """One ticket. Lanes give defaults for what is left out."""

    lane: LaneName
    ticket: Id
    revision: Id
    evidence: Any = Field(
        description="Any JSON but null: up to 256 KiB, nested up to 64 deep.",
        json_schema_extra={"not": {"type": "null"}},
    )
    source: Source | None = Field(None, description="Where ids are unique. Needed unless the key is for one source.")
    deadline: Moment | None = None
    submitted_at: Moment | None = None
    severity: int | None = Field(None, ge=0, le=3)
    category: Source | None = None
    source_kind: _one_of(SourceKind.values) | None = None  # type: ignore[valid-type]
    exposure: _one_of(Exposure.values) | None = None  # type: ignore[valid-type]
    deadline_kind: _one_of(DeadlineKind.values) | None = None  # type: ignore[valid-type]
    restricted: bool | None = None
    replaces: Id | None = Field(None, description="The revision that this one supersedes.")


class Accepted(Schema):
    """`stored` is new; `known` was sent before; `superseded` was sent before, and a newer revision is current."""

    outcome: Literal["stored", "known", "superseded"]
    source: str
    ticket: str
    revision: str
    current_revision: str


class TicketName(Closed):
    ticket: Id
    source: Source | None = Field(None, description="Needed unless the key is for one source.")


class Withdrawn(Schema):
    outcome: Literal["done"]
    source: str
    ticket: str


class AppealIn(TicketName):
    statement: Annotated[str, StringConstraints(min_length=1, max_length=4000, pattern=SAYS_SOMETHING)] = Field(
        description="What the author says against it."
    )
    revision: Id | None = Field(None, description="The appeal is refused if another one is current.")


class Appealed(Schema):
    """`known`: this decision was appealed against before, and once is enough."""

    outcome: Literal["opened", "known"]
    source: str
    ticket: str


class EraseIn(TicketName):
    ground: Annotated[str, StringConstraints(min_length=1, max_length=MAX_GROUND, pattern=SAYS_SOMETHING)] = Field(
        description="Why, for the audit: the law or the author's request. No content."
    )


class ErasedOut(Schema):
    """`already`: nothing of it was left to erase."""

    outcome: Literal["erased", "already"]
    source: str
    ticket: str
    revisions: int = Field(description="How many were blanked now.")


class DecisionOut(Schema):
    verdict: Literal["APPROVED", "REJECTED"]
    why: str
    reason_code: str | None
    automation: str
    decided_at: datetime


class Waiting(Schema):
    """Where it stands: `layer` and `cause` are codes, the rest is for people, in the language asked for."""

    layer: str | None
    cause: str
    sentence: str
    mover: str


class TicketOut(Schema):
    source: str
    ticket: str
    revision: str
    lane: str
    severity: int
    category: str
    first_seen_at: datetime
    withdrawn_at: datetime | None
    state: Literal["WAITING", "LEASED", "DONE", "DEAD"]
    result: str | None
    dead_reason: str | None
    attempts: int
    deadline: datetime
    decision: DecisionOut | None = Field(description="The one in force, once its message is out.")
    waiting: Waiting


class MessageOut(Schema):
    """The same document that webhooks carry: docs/webhooks."""

    id: str
    number: int
    seq: int | None
    type: str
    timestamp: str
    data: dict[str, Any]


class MessagePage(Schema):
    messages: list[MessageOut]
    next: int = Field(description="Ask with `after` this next: nothing committed later ever gets a number before it.")
    more: bool = Field(description="Whether more are there already.")


class HoldOut(Schema):
    reason: str
    automatic: bool
    since: datetime
    until: datetime | None


class StageOut(Schema):
    number: int
    name: str
    cap: int


class LaneOut(Schema):
    """A lane's health. `state` is a code, `steady` the good one; `layers` counts open tickets by where they wait."""

    name: str
    title: str
    state: str
    hold: HoldOut | None
    stage: StageOut | None
    model_answers: bool | None = Field(description="What the last look at the model said; null: nobody looked lately.")
    layers: dict[str, int] | None = Field(description="Null: they could not be counted in time.")
    oldest_ready_seconds: float | None
    oldest_held_seconds: float | None


class LanePage(Schema):
    lanes: list[LaneOut]
    next: str | None = Field(description="Ask with `after` this for the lanes that follow; null: these are the last.")


class EndpointOut(Schema):
    name: str
    state: Literal["enabled", "disabled", "retired"]
    failing_since: datetime | None
    paused_until: datetime | None
    last_delivered_at: datetime | None


class EndpointPage(Schema):
    endpoints: list[EndpointOut]
    next: str | None


class Because(Closed):
    reason: Annotated[str, Field(max_length=500)] = ""


class EndpointActed(Schema):
    """`already`: it was so before, and nothing was changed."""

    outcome: Literal["done", "already"]
    endpoint: EndpointOut


class DeliveryOut(Schema):
    id: int
    endpoint: str
    type: str
    message: str
    number: int | None
    state: str
    tries: int
    last_outcome: str | None
    last_status: int | None
    created_at: datetime
    ended_at: datetime | None


class DeliveryPage(Schema):
    deliveries: list[DeliveryOut]
    next: int | None = Field(description="Ask with `before` this for older ones; null: these are the oldest.")


class ReplayIn(Closed):
    """Which deliveries to send again: of an endpoint, by state, kind and number of the message."""

    endpoint: LaneName
    state: Literal["delivered", "given_up"] | None = None
    kind: str | None = None
    from_number: int | None = Field(None, ge=0, le=2**63 - 1)
    to_number: int | None = Field(None, ge=0, le=2**63 - 1)


class Replayed(Schema):
    replayed: int
    more: bool = Field(description="Others fit too: replay again to reach them.")

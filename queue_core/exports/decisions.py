"""The decisions themselves: one row a link of the chain, with what it rests on and nothing of the content."""

from collections.abc import Collection, Iterator, Sequence

from queue_core.exports.periods import Period
from queue_core.exports.reading import batches
from queue_core.exports.tables import Column, Kind, Row, Table
from queue_core.models import Decision, Lane

TABLE = Table(
    (
        Column("decision", Kind.NUMBER),
        Column("source"),
        Column("ticket"),
        Column("revision"),
        Column("lane"),
        Column("verdict"),
        Column("why"),
        Column("replaces", Kind.NUMBER),
        Column("in_force", Kind.FLAG),
        Column("reason_code"),
        Column("automation"),
        Column("unseen", Kind.FLAG),
        Column("decided_by"),
        Column("model"),
        Column("policy_version", Kind.NUMBER),
        Column("stage", Kind.NUMBER),
        Column("round", Kind.NUMBER),
        Column("source_kind"),
        Column("category"),
        Column("severity", Kind.NUMBER),
        Column("exposure"),
        Column("note"),
        Column("first_seen_at", Kind.MOMENT),
        Column("decided_at", Kind.MOMENT),
    )
)


def rows(period: Period, *, lanes: Collection[Lane]) -> Iterator[Sequence[Row]]:
    """The table's rows, a batch at a time."""
    for found in batches(period, lanes=lanes):
        yield [_row(decision) for decision in found]


def _row(decision: Decision) -> Row:
    ticket = decision.ticket
    return (
        decision.pk,
        ticket.source,
        ticket.external_id,
        decision.revision,
        decision.lane.name,
        decision.verdict,
        decision.why,
        decision.replaces_id,
        decision.verdict is not None and not hasattr(decision, "replaced_by"),
        decision.reason_code.code if decision.reason_code else None,
        decision.automation,
        decision.is_unseen,
        decided_by(decision),
        decision.attempt.model if decision.attempt else None,
        decision.policy.version if decision.policy else None,
        decision.run.number if decision.run else None,
        decision.job.round,
        decision.source_kind,
        ticket.category,
        ticket.severity,
        ticket.exposure,
        # What a person wrote about restricted evidence tells of it.
        "" if decision.job.evidence.is_restricted else decision.note,
        ticket.first_seen_at,
        decision.decided_at,
    )


def decided_by(decision: Decision) -> str:
    """Whether a model or a person decided; never who. A recall was decided by the person who recalled."""
    return "model" if decision.attempt_id is not None else "person"

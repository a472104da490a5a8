"""Reason codes as people decide by them: for their lane, for the verdict, with a note where one is asked for."""

from datetime import datetime

from django.db.models import Q, QuerySet

from queue_core.errors import InvalidRequest
from queue_core.models import ReasonCode, ReasonCodeVersion
from queue_core.states import ItemKind, Verdict

#: Who changes what another person decided says why.
KINDS_WITH_A_NOTE = (ItemKind.DISAGREEMENT, ItemKind.CORRECTION, ItemKind.APPEAL)


def in_use(lane_id: int) -> QuerySet[ReasonCode]:
    """The reason codes that people decide by in a lane."""
    return ReasonCode.objects.filter(Q(lanes=[]) | Q(lanes__contains=[lane_id]), is_active=True)


def ground_of(verdict: str, code: str | None, *, lane_id: int) -> ReasonCode | None:
    """The reason code of a decision. Raises InvalidRequest (`reason_code`) where it is missing or a wrong one."""
    if not code:
        if verdict == Verdict.REJECTED:
            raise InvalidRequest("A REJECTED names its reason code.", field="reason_code")
        return None
    grounds = in_use(lane_id).filter(is_for_rejection=verdict == Verdict.REJECTED)
    ground = grounds.filter(code=code).first() if "\0" not in code else None
    if ground is None:
        raise InvalidRequest("This reason code is not in use for this verdict in this lane.", field="reason_code")
    return ground


def needs_note(kind: str, ground: ReasonCode | None) -> bool:
    return kind in KINDS_WITH_A_NOTE or (ground is not None and ground.needs_note)


def check_note(kind: str, ground: ReasonCode | None, note: str) -> None:
    """Raises InvalidRequest (`note`) where the reason code, or the kind of item, asks for a note and there is none."""
    if note.strip() or not needs_note(kind, ground):
        return
    if kind in KINDS_WITH_A_NOTE:
        raise InvalidRequest("Whoever decides anew what was decided says why: a note is needed.", field="note")
    raise InvalidRequest("This reason code needs a note.", field="note")


def keep_version(ground: ReasonCode, *, now: datetime) -> None:
    """Keep what the code says in its version, once. Called by whoever saves a code, and before a decision by it."""
    said = {"title": ground.title, "clause": ground.clause, "public_text": ground.public_text, "made_at": now}
    ReasonCodeVersion.objects.get_or_create(ground=ground, version=ground.version, defaults=said)

"""Recall: the model's decisions of a stage run, or of a filter, taken back by a lead who saw how many they are.

Up to a chunk of them are recalled in the very transaction of the act. The rest follows in chunks of the tick, each a
transaction of its own; how far it is, is counted from the entries.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from django.db import connection, transaction
from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Value
from django.utils.translation import gettext as _

from queue_core import audit, contract, relay
from queue_core.clock import Clock
from queue_core.contract import RecallTerms, lock_lane
from queue_core.errors import InvalidRequest
from queue_core.models import Decision, Lane, Message, Recall, RecallEntry, StageRun
from queue_core.ramp_checks import checked_reason, require
from queue_core.ramp_outages import EntryCode, write_entry
from queue_core.states import MessageKind, RecallOutcome, RecallTo, Verdict

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser

RIGHT = "recall_decision"
#: Decisions recalled in one transaction. Claims wait for the lane's lock meanwhile, so it is about 100 ms of work.
CHUNK = 50
#: Chunks of one recall in one tick.
CHUNKS_A_TICK = 20
#: More than this at once is more than anybody has looked into: a narrower filter is asked for.
MOST = 200_000
#: Whose messages were read is told of no more than this many decisions in a preview.
MOST_LOOKED_AT = 5_000
LONGEST_DEADLINE = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class Selection:
    """Which of a lane's decisions in force by the model: of a run, or of a time; decided at `until` at the latest.

    `until` is when the preview was made, so that what it counted is what is recalled.
    """

    until: datetime
    run: int | None = None
    since: datetime | None = None
    verdict: Verdict | None = None
    reason_code: str = ""

    def as_json(self) -> dict[str, Any]:
        return {
            "run": self.run,
            "since": self.since.isoformat() if self.since else None,
            "until": self.until.isoformat(),
            "verdict": self.verdict.value if self.verdict else None,
            "reason_code": self.reason_code or None,
        }


@dataclass(frozen=True, slots=True)
class RecallPreview:
    """How many would be recalled. `delivered` are those whose consumers are told; None where they are too many to look.

    `superseded` are of revisions that are no longer current: nobody looks at those again.
    """

    count: int
    verdicts: dict[str, int]
    delivered: int | None
    superseded: int

    @property
    def undelivered(self) -> int | None:
        return None if self.delivered is None else self.count - self.delivered


class RecallActOutcome(StrEnum):
    RECALLED = "recalled"
    #: Other than was shown: somebody recalled or decided some of them, or more were committed.
    DIFFERS = "differs"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class RecallActed:
    """`count` is how many there are now. `by` and `at` name the lane's last recall, where that may be why."""

    outcome: RecallActOutcome
    count: int
    recall: Recall | None = None
    by: "AbstractUser | None" = None
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """Entries by what became of them; `pending` ones wait for their chunk."""

    pending: int = 0
    withdrawn: int = 0
    announced: int = 0
    passed_over: int = 0

    @property
    def total(self) -> int:
        return self.pending + self.withdrawn + self.announced + self.passed_over


def selected(lane: Lane, selection: Selection) -> QuerySet[Decision]:
    """The decisions of a selection that are in force now and in no recall that is under way."""
    rows = Decision.objects.filter(
        lane=lane, attempt__isnull=False, verdict__isnull=False, decided_at__lte=selection.until
    )
    since = [one for one in (selection.since, _started(lane, selection.run)) if one is not None]
    if since:
        rows = rows.filter(decided_at__gte=max(since))
    if selection.run is not None:
        rows = rows.filter(run_id=selection.run)
    if selection.verdict is not None:
        rows = rows.filter(verdict=selection.verdict)
    if selection.reason_code:
        rows = rows.filter(reason_code__code=selection.reason_code)
    replaced = Decision.objects.filter(replaces=OuterRef("pk"))
    under_way = RecallEntry.objects.filter(decision=OuterRef("pk"), outcome__isnull=True)
    return rows.filter(~Exists(replaced), ~Exists(under_way))


def preview(lane: Lane, selection: Selection) -> RecallPreview:
    """Count what a recall would take back, without a lock. Raises InvalidRequest for a run of another lane."""
    rows = selected(lane, selection).order_by()
    verdicts = dict(rows.values_list("verdict").annotate(number=Count("pk")))
    count = sum(verdicts.values())
    superseded = rows.exclude(_is_current()).count() if count else 0
    return RecallPreview(count, verdicts, _delivered(rows) if count <= MOST_LOOKED_AT else None, superseded)


@transaction.atomic
def recall(
    lane_id: int,
    selection: Selection,
    *,
    person: "AbstractUser",
    reason: str,
    shown: int,
    to: RecallTo = RecallTo.PEOPLE,
    deadline_after: timedelta | None = None,
    clock: Clock,
) -> RecallActed:
    """Recall the decisions of a selection, if they are as many as were `shown`.

    `to` people: each ticket gets an item; to review: a new round for the model, through the ramp, with a deadline
    `deadline_after` from then. Raises NotPermitted, and InvalidRequest for a reason, deadline or run that is none.
    """
    require(person, RIGHT, lane_id)
    reason = checked_reason(reason)
    deadline_after = _checked_deadline(to, deadline_after)
    lane = lock_lane(lane_id)
    now = clock.now()
    act = Recall(
        lane=lane, run_id=selection.run, selection=selection.as_json(), to=to, deadline_after=deadline_after,
        reason=reason, by_id=person.pk, started_at=now,
    )  # fmt: skip
    count = _write_down(act, selected(lane, selection), shown=shown)
    if count != shown or not count:
        last = Recall.objects.filter(lane=lane).select_related("by").order_by("-started_at", "-pk").first()
        outcome = RecallActOutcome.DIFFERS if shown else RecallActOutcome.NOTHING
        return RecallActed(outcome, count, by=last.by if last else None, at=last.started_at if last else None)
    after = {"recall": act.pk, "decisions": count, "to": to.value, **act.selection}
    audit.record("decisions.recalled", now=now, actor=person, subject=act, lane=lane, reason=reason, after=after)
    write_entry(
        lane, EntryCode.RECALLED, now=now, person=person, text=reason, recall=act.pk, decisions=count, to=to.value
    )
    _take_chunk(lane, act, clock)
    return RecallActed(RecallActOutcome.RECALLED, count, act, by=person, at=now)


def go_on(*, clock: Clock) -> int:
    """Recall further chunks of what is under way, the oldest first. Safe to run twice at once. Returns how many."""
    done = 0
    for pk in Recall.objects.filter(ended_at__isnull=True).order_by("pk").values_list("pk", flat=True)[:20]:
        for _chunk in range(CHUNKS_A_TICK):
            taken = _next_chunk(pk, clock)
            done += taken
            if not taken:
                break
    return done


def progress(act: Recall) -> Progress:
    counts = dict(act.entries.order_by().values_list("outcome").annotate(number=Count("pk")))
    return Progress(pending=counts.get(None, 0), **{one.value: counts.get(one.value, 0) for one in RecallOutcome})


def last_recalls(lane: Lane, *, most: int = 5) -> list[tuple[Recall, Progress]]:
    """The newest first, each with how far it is."""
    acts = Recall.objects.filter(lane=lane).select_related("by", "run").order_by("-started_at", "-pk")[:most]
    return [(act, progress(act)) for act in acts]


def _started(lane: Lane, run_id: int | None) -> datetime | None:
    if run_id is None:
        return None
    started = StageRun.objects.filter(pk=run_id, lane=lane).values_list("started_at", flat=True).first()
    if started is None:
        raise InvalidRequest(_("This lane has no such stage run."), field="run")
    return started


def _is_current() -> Q:
    return Q(revision=F("ticket__current_revision"), ticket__withdrawn_at__isnull=True)


def _delivered(rows: QuerySet[Decision]) -> int:
    messages = Message.objects.filter(decision__in=rows.values("pk"), kind=MessageKind.DECISION)
    return len(relay.seen_by_somebody(list(messages.values_list("pk", flat=True))))


def _checked_deadline(to: RecallTo, after: timedelta | None) -> timedelta | None:
    if to == RecallTo.PEOPLE:
        return None
    if after is None or not timedelta(0) < after <= LONGEST_DEADLINE:
        raise InvalidRequest(_("A new round needs a deadline, at most 30 days from now."), field="deadline")
    return after


def _write_down(act: Recall, rows: QuerySet[Decision], *, shown: int) -> int:
    """The act and its entries, unless they are not as many as shown. Returns how many there are."""
    with transaction.atomic():
        act.save(force_insert=True)
        chosen = rows.order_by("pk").values_list(Value(act.pk), "pk")[: MOST + 1]
        statement, params = chosen.query.sql_with_params()
        with connection.cursor() as cursor:
            cursor.execute(f"INSERT INTO queue_core_recallentry (recall_id, decision_id) {statement}", params)
            count = int(cursor.rowcount)
        # Undone up to here, and no further: the caller answers with the number.
        transaction.set_rollback(not count or count != shown)
    if count > MOST:
        raise InvalidRequest(
            _("At most %(most)d decisions are recalled at once: choose fewer.") % {"most": MOST}, field="run"
        )
    return count


@transaction.atomic
def _next_chunk(recall_id: int, clock: Clock) -> int:
    act = Recall.objects.select_related("by").get(pk=recall_id)
    return _take_chunk(lock_lane(act.lane_id), act, clock)


def _take_chunk(lane: Lane, act: Recall, clock: Clock) -> int:
    """Under the lane's lock, so that no raise accepts meanwhile what is recalled here."""
    pending = RecallEntry.objects.filter(recall=act, outcome__isnull=True).order_by("pk")
    entries = list(pending[:CHUNK])
    terms = RecallTerms(lane, act.by, act.reason, RecallTo(act.to), act.deadline_after)
    done = contract.recall_decisions(
        [entry.decision_id for entry in entries],
        terms,
        withdraw=lambda messages: relay.withdraw(messages, now=clock.now()).delivered,
        clock=clock,
    )
    now = clock.now()
    for entry in entries:
        found = done[entry.decision_id]
        entry.outcome, entry.job, entry.at = found.outcome, found.job, now
    RecallEntry.objects.bulk_update(entries, ["outcome", "job", "at"])
    if len(entries) < CHUNK:
        Recall.objects.filter(pk=act.pk, ended_at__isnull=True).update(ended_at=now)
    return len(entries)

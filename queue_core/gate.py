"""The gate before a raise: what a person sees, and what is measured again under the lane's lock when they submit."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.core import signing
from django.utils.translation import gettext as _

from queue_core.errors import InvalidRequest
from queue_core.gate_answers import answers_of
from queue_core.gate_lines import RANK, GateLine, GateVerdict, broken, judge
from queue_core.gate_measure import Load, count_calls, count_completions, measure_load
from queue_core.gate_rightly import judge_rightly
from queue_core.models import Lane, Stage, StageRun
from queue_core.ramp_runs import next_stage

__all__ = [
    "GateLine",
    "GateReading",
    "GateVerdict",
    "Load",
    "Shown",
    "Soak",
    "open_figures",
    "read",
    "read_lines",
    "read_rightly",
]

SALT = "queue_core.gate"
#: A person decides by figures that are no older.
FIGURES_LAST = timedelta(minutes=2)


@dataclass(frozen=True, slots=True)
class Soak:
    """How long a run has been proved: `completions` are counted no further than they are needed."""

    completions: int
    completions_needed: int
    elapsed: timedelta
    time_needed: timedelta

    @property
    def is_met(self) -> bool:
        return self.completions >= self.completions_needed and self.elapsed >= self.time_needed

    def frozen(self) -> dict[str, Any]:
        return {
            "completions": self.completions,
            "completions_needed": self.completions_needed,
            "seconds": self.elapsed.total_seconds(),
            "seconds_needed": self.time_needed.total_seconds(),
            "is_met": self.is_met,
        }


@dataclass(frozen=True, slots=True)
class GateReading:
    """The gate of one lane at one time. On hold there is no run, no line and no soak: the probe rests on the load."""

    lane: int
    run: StageRun | None
    hold: int | None
    cap: int | None
    next: Stage | None
    taken_at: datetime
    lines: tuple[GateLine, ...]
    soak: Soak | None
    load: Load

    @property
    def verdict(self) -> GateVerdict:
        """The worst of the lines; inconclusive where there is none."""
        verdicts = [line.verdict for line in self.lines] or [GateVerdict.INCONCLUSIVE]
        return max(verdicts, key=RANK.__getitem__)

    def frozen(self) -> dict[str, Any]:
        """All of it as plain JSON, as it is kept beside a raise."""
        return {
            "taken_at": self.taken_at.isoformat(),
            "run": self.run.pk if self.run else None,
            "hold": self.hold,
            "cap": self.cap,
            "next": {"number": self.next.number, "cap": self.next.cap, "rate": self.next.rate} if self.next else None,
            "lines": [line.frozen() for line in self.lines],
            "soak": self.soak.frozen() if self.soak else None,
            "verdict": self.verdict.value,
            "load": self.load.frozen(),
        }

    def sign(self) -> str:
        """The figures id: what this reading binds a raise to. It holds no secret; nobody but the site can make one."""
        return signing.Signer(salt=SALT).sign_object(
            {
                "lane": self.lane,
                "run": self.run.pk if self.run else None,
                "hold": self.hold,
                "next": [self.next.number, self.next.cap, self.next.rate] if self.next else None,
                "at": self.taken_at.timestamp(),
                "verdicts": {line.figure.value: line.verdict.value for line in self.lines},
            }
        )

    def is_for(self, shown: "Shown") -> bool:
        """Whether the next stage is the one that was shown, with the cap and rate that were shown."""
        return shown.next == ([self.next.number, self.next.cap, self.next.rate] if self.next else None)

    def worse_than(self, shown: "Shown") -> tuple[str, ...]:
        """The figures whose verdict is worse than was shown. One that was not shown is worse unless it is good."""
        return tuple(
            line.figure.value
            for line in self.lines
            if RANK[line.verdict] > RANK[GateVerdict(shown.verdicts.get(line.figure.value, GateVerdict.GOOD))]
        )


@dataclass(frozen=True, slots=True)
class Shown:
    """What a figures id says was shown."""

    lane: int
    run: int | None
    hold: int | None
    next: list[int | None] | None
    at: float
    verdicts: dict[str, str]

    def is_too_old(self, now: datetime) -> bool:
        return not 0 <= now.timestamp() - self.at <= FIGURES_LAST.total_seconds()


def open_figures(figures_id: str, *, lane_id: int) -> Shown:
    """The content of a figures id; InvalidRequest for one that this site did not make for this lane."""
    try:
        shown = Shown(**signing.Signer(salt=SALT).unsign_object(figures_id))
    except signing.BadSignature as fault:
        raise InvalidRequest(
            _("The form does not say which figures it rests on. Refresh them."), field="figures_id"
        ) from fault
    if shown.lane != lane_id:
        raise InvalidRequest(_("These figures are of another lane. Refresh them."), field="figures_id")
    return shown


def read(lane: Lane, *, now: datetime) -> GateReading:
    """Measure a lane's gate. For a raise the caller holds the lane's lock, so that run and hold stand still."""
    run = lane.run
    held = run if run is not None or lane.hold is None else lane.hold.run
    return GateReading(
        lane=lane.pk,
        run=run,
        hold=lane.hold_id if run is None else None,
        cap=lane.cap,
        next=next_stage(lane),
        taken_at=now,
        lines=(*read_lines(run, now=now), *read_rightly(run, now=now)) if run is not None else (),
        soak=_soak(run, now) if run is not None else None,
        load=measure_load(lane, held, now=now),
    )


def read_lines(run: StageRun, *, now: datetime, since: datetime | None = None) -> list[GateLine]:
    """Whether the model answers: a run's guardrails over its window up to now, or from `since` on."""
    return judge(run, count_calls(run, since=since or now - run.window, now=now))


def read_rightly(run: StageRun, *, now: datetime) -> list[GateLine]:
    """Whether it answers rightly: the lines of the gate's second half that the run has limits for."""
    return judge_rightly(run, answers_of(run, now=now))


def broken_line(run: StageRun, *, now: datetime, since: datetime | None = None) -> GateLine | None:
    """The first guardrail of either half that is broken."""
    return broken([*read_lines(run, now=now, since=since), *read_rightly(run, now=now)])


def _soak(run: StageRun, now: datetime) -> Soak:
    return Soak(
        completions=count_completions(run, limit=run.soak_completions),
        completions_needed=run.soak_completions,
        elapsed=max(now - run.started_at, timedelta(0)),
        time_needed=run.soak_time,
    )

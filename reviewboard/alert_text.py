"""An alert in the reader's language: whole sentences from kinds and parameters."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from queue_core.figures import LaneState
from queue_core.figures.flow import LAST_WITHIN
from queue_core.gate_lines import GateVerdict
from queue_core.models import AlertEpisode
from queue_core.states import AlertKind
from reviewboard.ramp_text import listed
from reviewboard.shapes import Tone
from reviewboard.templatetags.board import COUNT_CAP, count_capped, duration
from reviewboard.where_text import hold_reason, moment

type Params = Mapping[str, Any]

TONES = {
    AlertKind.MODEL_BACK: Tone.INFO,
    AlertKind.SOAK_MET: Tone.INFO,
    AlertKind.GROWING: Tone.WARN,
    AlertKind.PASSING: Tone.WARN,
    AlertKind.HELD_LATE: Tone.WARN,
    AlertKind.READY_LATE: Tone.WARN,
}


@dataclass(frozen=True, slots=True)
class AlertLine:
    """One alert as a page shows it. `url` leads to where something can be done."""

    pk: int
    tone: Tone
    about: str
    text: str
    begun_at: datetime
    over_at: datetime | None
    acknowledged_by: str
    acknowledged_at: datetime | None
    url: str


def line(episode: AlertEpisode) -> AlertLine:
    return AlertLine(
        pk=episode.pk,
        tone=TONES.get(AlertKind(episode.kind), Tone.BAD) if episode.kind in AlertKind.values else Tone.BAD,
        about=about(episode),
        text=sentence(episode),
        begun_at=episode.begun_at,
        over_at=episode.over_at,
        acknowledged_by=episode.acknowledged_by.get_username() if episode.acknowledged_by else "",
        acknowledged_at=episode.acknowledged_at,
        url=url_of(episode),
    )


def about(episode: AlertEpisode) -> str:
    """What it concerns, in a name."""
    if episode.lane is not None:
        return str(episode.lane)
    if episode.connection is not None:
        return _("Model connection %(name)s") % {"name": episode.connection.name}
    return _("The site")


def url_of(episode: AlertEpisode) -> str:
    if episode.lane is not None:
        return reverse("lane", args=[episode.lane.name])
    kind, _space, number = episode.subject.partition(" ")
    return reverse("outage", args=[number]) if kind == "outage" and number.isdigit() else reverse("board")


def sentence(episode: AlertEpisode) -> str:
    """What is wrong; its kind where a later version wrote one that this one does not know."""
    found = _SENTENCES.get(episode.kind)
    return found(episode.params) if found else episode.kind


def over_sentence(episode: AlertEpisode) -> str:
    """That it is over, said once."""
    values = {
        "what": AlertKind(episode.kind).label,
        "begun": moment(episode.begun_at),
        "over": moment(episode.over_at),
        "person": episode.acknowledged_by.get_username() if episode.acknowledged_by else "",
    }
    if episode.acknowledged_by is None:
        return _("Over: %(what)s. From %(begun)s to %(over)s; nobody acknowledged it.") % values
    return _("Over: %(what)s. From %(begun)s to %(over)s; acknowledged by %(person)s.") % values


def _since(params: Params) -> str:
    return moment(datetime.fromisoformat(params["since"])) if params.get("since") else _("an unknown time")


def _scheduler_dead(params: Params) -> str:
    if not params.get("since"):
        return _("No scheduler was ever seen: nothing is swept, judged or woken. Start one.")
    return _("The scheduler is dead: it was last seen at %(since)s. Nothing is swept or woken; start it.") % {
        "since": _since(params)
    }


def _automatic_hold(params: Params) -> str:
    lanes = params["lanes"]
    return ngettext(
        "The lane %(lanes)s put itself on hold at %(since)s: %(reason)s.",
        "The lanes %(lanes)s put themselves on hold, the first at %(since)s: %(reason)s.",
        len(lanes),
    ) % {"lanes": listed(lanes), "since": _since(params), "reason": hold_reason(params["reason"])}


def _nobody(params: Params) -> str:
    if params.get("why") == LaneState.NOT_JUDGED:
        return _("Nobody judges the guardrails, so nothing is claimed: neither a worker nor the scheduler is at work.")
    return _("There is work and room in the stage, and no worker was seen for 30 seconds.")


def _no_progress(params: Params) -> str:
    if not params.get("since"):
        return _("Work waits, and no call has ended with a result for more than %(time)s.") % {
            "time": duration(LAST_WITHIN)
        }
    return _("Work waits, and no call has ended with a result since %(since)s.") % {"since": _since(params)}


def _severe_waiting(params: Params) -> str:
    return _(
        "A ticket of severity 3 (danger to life, children, terror) has waited since %(since)s, and nobody has taken it."
    ) % {"since": _since(params)}


def _passing(params: Params) -> str:
    number, most = params["count"], params.get("most", COUNT_CAP)
    shares = [
        _("severity %(severity)s: %(number)s") % {"severity": severity, "number": count_capped(share, most)}
        # jsonb keeps its keys in an order of its own.
        for severity, share in sorted(params["by_severity"].items(), key=lambda one: int(one[0]), reverse=True)
    ]
    return ngettext(
        "%(number)s waiting ticket passes its deadline within the hour (%(shares)s).",
        "%(number)s waiting tickets pass their deadline within the hour (%(shares)s).",
        number,
    ) % {"number": count_capped(number, most), "shares": listed(shares)}


def _held_late(params: Params) -> str:
    return _("The oldest held ticket has waited since %(since)s, longer than the target of %(target)s.") % _late(params)


def _ready_late(params: Params) -> str:
    return _("The oldest ready ticket has waited since %(since)s, longer than the target of %(target)s.") % _late(
        params
    )


def _late(params: Params) -> dict[str, str]:
    return {"since": _since(params), "target": duration(params["target"])}


def _growing(params: Params) -> str:
    return _("More comes in than the model answers: the queue grows by %(growth)s a minute.") % {
        "growth": params["growth"]
    }


def _model_back(params: Params) -> str:
    lanes = params["lanes"]
    return ngettext(
        "The model has answered its health check since %(since)s, and the lane %(lanes)s is still on hold.",
        "The model has answered its health check since %(since)s, and the lanes %(lanes)s are still on hold.",
        len(lanes),
    ) % {"since": _since(params), "lanes": listed(lanes)}


def _soak_met(params: Params) -> str:
    gate = params.get("gate")
    match gate["verdict"] if gate else "":
        case GateVerdict.GOOD:
            text = _("Stage %(stage)s, %(name)s, has run its time and its gate passes. A lead may raise the stage.")
        case GateVerdict.BAD:
            text = _("Stage %(stage)s, %(name)s, has run its time, but its gate does not pass. A lead has to look.")
        case GateVerdict.INCONCLUSIVE:
            text = _("Stage %(stage)s, %(name)s, has run its time, but too little is known for its gate to pass.")
        case _:
            text = _("Stage %(stage)s, %(name)s, has run its time. A lead may look at its gate and raise the stage.")
    return text % params


_SENTENCES: dict[str, Callable[[Params], str]] = {
    AlertKind.SCHEDULER_DEAD: _scheduler_dead,
    AlertKind.AUTOMATIC_HOLD: _automatic_hold,
    AlertKind.NOBODY: _nobody,
    AlertKind.NO_PROGRESS: _no_progress,
    AlertKind.SEVERE_WAITING: _severe_waiting,
    AlertKind.PASSING: _passing,
    AlertKind.HELD_LATE: _held_late,
    AlertKind.READY_LATE: _ready_late,
    AlertKind.GROWING: _growing,
    AlertKind.MODEL_BACK: _model_back,
    AlertKind.SOAK_MET: _soak_met,
}

"""Where a ticket waits, in the reader's language: whole sentences from codes and parameters, never of fragments."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from django.template.defaultfilters import date as format_date
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from queue_core.states import HoldReason, Verdict
from queue_core.where import Cause, Layer, Moves, Prospect, Standing

type Params = Mapping[str, Any]


def layer_name(layer: Layer) -> str:
    """A layer's name, as it stands in a list."""
    return {
        Layer.DELIVERY: _("delivery"),
        Layer.PEOPLE: _("with people"),
        Layer.RUNNING: _("at the model now"),
        Layer.HELD: _("held"),
        Layer.BACK_OFF: _("resting after a failure"),
        Layer.TOO_LATE: _("too late for the model"),
        Layer.LEASE_OVER: _("lease over"),
        Layer.NO_WORKERS: _("no workers"),
        Layer.STAGE_FULL: _("stage full"),
        Layer.READY: _("ready"),
    }[layer]


def layer_note(layer: Layer) -> str:
    """What moves the tickets of a layer on, in general."""
    return {
        Layer.DELIVERY: _("The endpoint has to take the message."),
        Layer.PEOPLE: _("A person decides them at the desk."),
        Layer.RUNNING: _("The model's answer, or the end of the lease."),
        Layer.HELD: _("A lead starts the probe or resumes the lane."),
        Layer.BACK_OFF: _("Nothing to do: they move by themselves when their time is over."),
        Layer.TOO_LATE: _("Only people can still reach them; otherwise their deadline passes."),
        Layer.LEASE_OVER: _("A worker takes each over, alone."),
        Layer.NO_WORKERS: _("Somebody has to start workers and the scheduler."),
        Layer.STAGE_FULL: _("A running call ends, or a lead raises the stage."),
        Layer.READY: _("A worker fetches them in their turn."),
    }[layer]


def prospect_name(prospect: Prospect) -> str:
    """Whether the model can still review a ticket, as it stands in a list."""
    return {
        Prospect.NOT_YET: _("not yet"),
        Prospect.TOO_LATE: _("too late for the model"),
        Prospect.NEVER: _("cannot run as set up"),
    }[prospect]


def sentence(standing: Standing) -> str:
    """Where one job stands and why."""
    return _WHY[standing.cause](standing.params)


def mover(standing: Standing) -> str:
    """What would move it on; empty where nothing has to."""
    return _MOVES[standing.moves](standing.params)


def moment(at: datetime | None) -> str:
    """A time inside a sentence: of day if it is today's in the reader's zone, else with its date."""
    if at is None:
        return _("an unknown time")
    local = timezone.localtime(at)
    # Which of the two forms only; nothing is judged by it.
    is_today = local.date() == timezone.localdate()
    return format_date(local, "H:i:s" if is_today else "Y-m-d H:i")


def hold_reason(reason: str) -> str:
    return str(HoldReason(reason).label) if reason in HoldReason.values else reason


def _held_by_person(params: Params) -> str:
    values = {"person": params["by"], "reason": hold_reason(params["reason"]), "since": moment(params["since"])}
    if params.get("until"):
        return _("The lane is on hold since %(since)s by %(person)s (%(reason)s), on purpose until %(until)s.") % {
            **values,
            "until": moment(params["until"]),
        }
    return _("The lane is on hold since %(since)s by %(person)s: %(reason)s.") % values


def _held_automatically(params: Params) -> str:
    if "reason" not in params:
        return _("The lane has not started yet: it is on hold.")
    return _("The lane put itself on hold at %(since)s: %(reason)s.") % {
        "reason": hold_reason(params["reason"]),
        "since": moment(params["since"]),
    }


def _rests(params: Params) -> str:
    text = ngettext(
        "It rests until %(at)s after %(number)d attempt.",
        "It rests until %(at)s after %(number)d attempts.",
        params["attempts"],
    )
    return text % {"at": moment(params["at"]), "number": params["attempts"]}


def _cap(params: Params) -> str:
    text = ngettext(
        "The stage is full: its one call at once is running.",
        "The stage is full: all of its %(number)d calls at once are running.",
        params["value"],
    )
    return text % {"number": params["value"]}


def _connection_cap(params: Params) -> str:
    text = ngettext(
        "The model's connection is full: its one call at once is running, over all of its lanes.",
        "The model's connection is full: all of its %(number)d calls at once are running, over all of its lanes.",
        params["value"],
    )
    return text % {"number": params["value"]}


def _rate(params: Params) -> str:
    text = ngettext(
        "The stage's rate is spent: %(number)d claim per minute.",
        "The stage's rate is spent: %(number)d claims per minute.",
        params["value"],
    )
    return text % {"number": params["value"]}


def _decided(params: Params) -> str:
    values = {"verdict": str(Verdict(params["verdict"]).label), "person": params["by"], "at": moment(params["at"])}
    if params["by"]:
        return _("It is decided: %(verdict)s by %(person)s at %(at)s.") % values
    return _("It is decided: %(verdict)s by the model at %(at)s.") % values


def _not_delivered(params: Params) -> str:
    text = ngettext(
        "It is decided, but since %(since)s the endpoint %(endpoint)s lacks the decision, after %(tries)d try.",
        "It is decided, but since %(since)s the endpoint %(endpoint)s lacks the decision, after %(tries)d tries.",
        params["tries"],
    )
    return text % {"endpoint": params["endpoint"], "since": moment(params["since"]), "tries": params["tries"]}


_WHY: dict[Cause, Callable[[Params], str]] = {
    Cause.NOT_DELIVERED: _not_delivered,
    Cause.KEPT_BACK: lambda p: (
        _("It is decided since %(since)s; the decision is kept back until a lead accepts the run.")
        % {"since": moment(p["since"])}
    ),
    Cause.ITEM_FREE: lambda p: (
        _("It waits for a person since %(since)s; nobody has taken it.") % {"since": moment(p["since"])}
    ),
    Cause.ITEM_TAKEN: lambda p: (
        _("%(person)s has taken it until %(at)s.")
        % {
            "person": p["by"],
            "at": moment(p["at"]),
        }
    ),
    Cause.LEASE_RUNS: lambda p: (
        _("It is at the model now: fence %(fence)d, its lease runs until %(at)s.")
        % {
            "fence": p["fence"],
            "at": moment(p["at"]),
        }
    ),
    Cause.HELD_BY_PERSON: _held_by_person,
    Cause.HELD_AUTOMATICALLY: _held_automatically,
    Cause.RESTS: _rests,
    Cause.REST_IS_OVER: lambda _p: _("Its rest is over; it goes back to the queue with the next tick."),
    Cause.RETRY_AFTER: lambda p: (
        _("The model asked for a pause: the lane claims nothing before %(at)s.") % {"at": moment(p["at"])}
    ),
    Cause.DEADLINE_PASSED: lambda p: (
        _("Its deadline passed at %(at)s; it turns DEAD within seconds.") % {"at": moment(p["deadline"])}
    ),
    Cause.TOO_LITTLE_TIME: lambda p: (
        _("Its deadline is %(at)s: less time is left than a call usually takes.") % {"at": moment(p["deadline"])}
    ),
    Cause.BUDGET_SPENT: lambda p: (
        _("Its last lease was over at %(at)s with all attempts spent.") % {"at": moment(p["since"])}
    ),
    Cause.NOT_TAKEN_OVER: lambda p: (
        _("Its lease was over at %(at)s without an answer: whether the model was called is not known.")
        % {"at": moment(p["since"])}
    ),
    Cause.NOT_JUDGED: lambda _p: _("Nobody has judged the guardrails for 30 seconds, so nothing is claimed."),
    Cause.NOBODY_FETCHES: lambda _p: _("There is room in the stage, but no worker was seen for 30 seconds."),
    Cause.CAP: _cap,
    Cause.CONNECTION_CAP: _connection_cap,
    Cause.RATE: _rate,
    Cause.NEXT: lambda _p: _("It can be claimed this second and waits for its turn."),
    Cause.PROBE_DRAWS: lambda _p: _("The probe runs: it draws a few harmless tickets, each at most once."),
    Cause.NO_POLICY: lambda _p: _("The lane has no policy, so that no answer of a model could be judged."),
    Cause.NO_PLAN: lambda _p: _("The lane is on hold and has no plan with a probe, so that nobody can start one."),
    Cause.NO_ROOM_EVER: lambda _p: _(
        "The lane is set up with room for no call at all, so that nothing is ever claimed."
    ),
    Cause.LEASE_TOO_SHORT: lambda _p: _(
        "The lane's lease leaves no time for a call, so that every claim is given back."
    ),
    Cause.RESTS_TOO_LONG: lambda p: (
        _("It rests until %(at)s, and its deadline is %(deadline)s: no time is left for a call after that.")
        % {"at": moment(p["at"]), "deadline": moment(p["deadline"])}
    ),
    Cause.HELD_TOO_LONG: lambda p: (
        _("The lane is on hold and its deadline is %(at)s: less time is left than a call usually takes.")
        % {"at": moment(p["deadline"])}
    ),
    Cause.DECIDED: _decided,
    Cause.SUPERSEDED: lambda _p: _("A newer revision has taken its place."),
    Cause.WITHDRAWN: lambda _p: _("The source has withdrawn it."),
    Cause.LOST: lambda _p: _("It is neither decided nor with anybody, which must not happen."),
}

_MOVES: dict[Moves, Callable[[Params], str]] = {
    Moves.DELIVERY: lambda p: (
        _("Nothing to do: it is sent again from %(at)s on, unless the endpoint is disabled.") % {"at": moment(p["at"])}
    ),
    Moves.LEAD_ACCEPTS: lambda _p: _("A lead who raises the stage or accepts the run moves it on."),
    Moves.PERSON_DECIDES: lambda _p: _("A person's decision moves it on."),
    Moves.ANSWER: lambda _p: _("The model's answer moves it on, or the end of its lease."),
    Moves.LEAD_STARTS_PROBE: lambda _p: _("A lead who starts the probe moves it on; a person may also take it before."),
    Moves.LEAD_RESUMES: lambda _p: _("A lead who resumes the lane moves it on; a person may also take it before."),
    Moves.TIME: lambda p: _("Nothing to do: it moves by itself at %(at)s.") % {"at": moment(p["at"])},
    Moves.NEXT_TICK: lambda _p: _("Nothing to do: it moves by itself within seconds."),
    Moves.PERSON_TAKES: lambda _p: _("Only a person can still decide it in time."),
    Moves.SWEEP: lambda _p: _("Nothing to do: it goes to people within seconds."),
    Moves.TAKEOVER: lambda _p: _("A worker takes it over, alone."),
    Moves.WORKERS: lambda _p: _("Somebody has to start a worker."),
    Moves.SCHEDULER: lambda _p: _("Somebody has to start the scheduler, or a worker."),
    Moves.SEAT: lambda _p: _("It moves when a call ends, or when a lead raises the stage."),
    Moves.TURN: lambda _p: _("Nothing to do: a worker fetches it."),
    Moves.NEXT_STAGE: lambda _p: _("It moves in its turn, or when a lead raises the stage."),
    Moves.ADMINISTRATOR: lambda _p: _(
        "It waits for nothing that will come: an administrator has to change the lane's set-up."
    ),
    Moves.ENGINEER: lambda _p: _("Tell a platform engineer."),
    Moves.NOTHING: lambda _p: "",
}

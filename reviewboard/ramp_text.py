"""What the ramp's verbs answered, as sentences in the reader's language."""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop, ngettext

from queue_core.gate_lines import Figure as GateFigure
from queue_core.hold import Held
from queue_core.models import Lane, StageRun
from queue_core.ramp import Acted, Missing, MissingCode, Raised, RaiseOutcome, RampOutcome
from queue_core.states import HoldReason
from reviewboard.models import Person
from reviewboard.shapes import Conflict, Text
from reviewboard.templatetags.board import count, duration


def figure_name(code: str) -> str:
    names = {
        GateFigure.ERRORS: _("errors"),
        GateFigure.TIMEOUTS: _("timeouts and expired leases"),
        GateFigure.STALE: _("answers that came too late"),
        GateFigure.LATENCY: _("usual call (p95)"),
        GateFigure.APPROVED: _("share of APPROVED"),
        GateFigure.REJECTED: _("share of REJECTED"),
        GateFigure.MANUAL: _("share for people"),
        GateFigure.WRONG: _("wrong known answers"),
        GateFigure.DISAGREEMENT: _("people who decided otherwise"),
    }
    return names[GateFigure(code)]


def measure_text(figure: str, value: float | None) -> str:
    """A share in per cent, or seconds for latency."""
    if value is None:
        return "–"
    if figure == GateFigure.LATENCY:
        return duration(value)
    return _("%(share)s %%") % {"share": number_format(value * 100, 1)}


def missing_text(missing: Missing) -> str:
    """What stands between a person and a raise."""
    return _MISSING[missing.code](missing.params)


def _completions(params: dict[str, Any]) -> str:
    return ngettext(
        "The soak needs %(needed)s completion; so far: %(done)s.",
        "The soak needs %(needed)s completions; so far: %(done)s.",
        params["needed"],
    ) % {"needed": count(params["needed"]), "done": count(params["done"])}


def _soak_time(params: dict[str, Any]) -> str:
    left = timedelta(seconds=max(params["seconds_needed"] - params["seconds"], 0))
    return _("The soak takes %(needed)s; %(left)s are left.") % {
        "needed": duration(params["seconds_needed"]),
        "left": duration(left),
    }


def _bad(params: dict[str, Any]) -> str:
    if params.get("usual") is not None:
        return _(
            "The answers are not as usual: the %(figure)s is at %(measured)s, usually at %(usual)s, and %(limit)s "
            "away is the limit."
        ) % _numbers(params)
    return _("A guardrail is broken: %(figure)s are at %(measured)s, the limit is %(limit)s.") % _numbers(params)


def _inconclusive(params: dict[str, Any]) -> str:
    if params["sample"] >= params["least_sample"]:
        text = _("Whether the %(figure)s is as usual cannot be told: the sample is too small for its limit.")
        if params.get("usual") is None:
            text = _("The %(figure)s has nothing to be compared with: the lane has not run steadily for long enough.")
        return text % _numbers(params)
    if params["figure"] in _TOO_FEW:
        return str(_TOO_FEW[params["figure"]]) % _numbers(params)
    return ngettext(
        "Too few calls to judge %(figure)s: %(sample)s of at least %(least)s.",
        "Too few calls to judge %(figure)s: %(sample)s of at least %(least)s.",
        params["least_sample"],
    ) % _numbers(params)


#: What is too few of, where it is no call for a ticket.
_TOO_FEW: dict[str, Text] = {
    GateFigure.WRONG: gettext_lazy("Too few known answers have come back: %(sample)s of %(least)s."),
    GateFigure.DISAGREEMENT: gettext_lazy("People have checked too few decisions blind: %(sample)s of %(least)s."),
}


def _numbers(params: dict[str, Any]) -> dict[str, str]:
    figure = params["figure"]
    return {
        "figure": figure_name(figure),
        "measured": measure_text(figure, params["measured"]),
        "limit": measure_text(figure, params["limit"]),
        "usual": measure_text(figure, params.get("usual")),
        "sample": count(params["sample"]),
        "least": count(params["least_sample"]),
    }


_MISSING: dict[MissingCode, Callable[[dict[str, Any]], str]] = {
    MissingCode.PERMISSION: lambda _p: _("You do not have the right to raise stages; a lead has."),
    MissingCode.STAGE: lambda _p: _("The plan has no further stage."),
    MissingCode.POLICY: lambda _p: _("The lane has no policy: put one into force first."),
    MissingCode.SOAK_COMPLETIONS: _completions,
    MissingCode.SOAK_TIME: _soak_time,
    MissingCode.GUARDRAIL_BAD: _bad,
    MissingCode.GUARDRAIL_INCONCLUSIVE: _inconclusive,
    MissingCode.SECOND_PERSON: lambda _p: _(
        "Two persons raise this lane: you raised the stage before, so another must."
    ),
    MissingCode.NOBODY_ELSE: lambda _p: _(
        "Two persons raise this lane, and nobody else may: an administrator has to give another person the right."
    ),
}


def raise_conflict(lane: Lane, raised: Raised) -> Conflict:
    """Why a raise did not happen: what changed, who did it, and the lane as it is now."""
    return Conflict(what=_raise_what(raised), who=_who(raised.by), at=raised.at, now_is=_now_is(lane))


def _raise_what(raised: Raised) -> str:
    match raised.outcome:
        case RaiseOutcome.ALREADY_RAISED:
            return _("Somebody was faster: this stage runs already.")
        case RaiseOutcome.RUN_DIFFERS:
            return _("Another stage runs than the one you saw.")
        case RaiseOutcome.ON_HOLD:
            return _("The lane was put on hold meanwhile.")
        case RaiseOutcome.PLAN_DIFFERS:
            return _("The plan was changed: the next stage is not the one you saw.")
        case RaiseOutcome.FIGURES_OLD:
            return _("The figures you saw are older than two minutes. Here they are again, as of now.")
        case RaiseOutcome.FIGURES_WORSE:
            names = [figure_name(code) for code in raised.worse]
            return _("The figures are worse than you saw: %(figures)s.") % {"figures": listed(names)}
    return _("The stage cannot be raised yet: see what is missing.")


def act_conflict(lane: Lane, acted: Acted) -> Conflict:
    """Why resume, step down or the cap did not happen."""
    return Conflict(what=_act_what(acted), who=_who(acted.by), at=acted.at, now_is=_now_is(lane))


def _act_what(acted: Acted) -> str:
    if acted.outcome == RampOutcome.GUARDRAIL_BROKEN:
        return _("A guardrail of the held stage is broken (%(figure)s): only the probe leads out of this hold.") % {
            "figure": figure_name(acted.figure)
        }
    return {
        RampOutcome.ON_HOLD: _("The lane was put on hold meanwhile."),
        RampOutcome.RUNNING: _("The lane runs already."),
        RampOutcome.DIFFERS: _("Another stage or hold stands there than the one you saw."),
        RampOutcome.NOT_A_PERSONS_HOLD: _("The lane put itself on hold: only the probe leads out."),
        RampOutcome.TOO_LATE: _("The hold has lasted over 15 minutes: only the probe leads out."),
        RampOutcome.CONNECTION_DIFFERS: _("The connection is not the one that was approved: only the probe leads out."),
        RampOutcome.NOT_LOWER: _("That is not a lower stage than the one that runs."),
        RampOutcome.POLICY_DIFFERS: _("Another version of the policy was put into force meanwhile."),
        RampOutcome.MADE_BY_THE_SAME: _(
            "This lane asks for two persons: whoever made the version is not the one who puts it into force."
        ),
        RampOutcome.UNCHANGED: _("Nothing was changed: it stands so already."),
        RampOutcome.NOTHING_KEPT_BACK: _("This run keeps no decisions back any more."),
        RampOutcome.OTHERS_KEPT_BACK: _("The number of decisions kept back is not the one you saw. Look once more."),
        RampOutcome.SAME_PERSON: _("Two persons raise this lane: you raised that stage, so another must accept it."),
    }[acted.outcome]


def policy_conflict(lane: Lane, acted: Acted) -> Conflict:
    """Why a version of the policy was not put into force."""
    in_force = _("version %(version)d") % {"version": lane.policy.version} if lane.policy else _("no policy")
    now_is = [(_("Policy"), in_force), *_now_is(lane)]
    # The machine forces no policy: where nobody is named, nobody did.
    who = _who(acted.by) if acted.by is not None else ""
    what = _act_what(acted)
    if acted.outcome == RampOutcome.MADE_BY_THE_SAME and not _others_who_may_force(acted.by).exists():
        what = _(
            "This lane asks for two persons, and nobody else may put a policy into force: give somebody the right."
        )
    return Conflict(what=what, who=who, at=acted.at, now_is=now_is)


def _others_who_may_force(maker: Any) -> Any:
    may_force = Person.objects.with_perm("queue_core.force_policy", backend="django.contrib.auth.backends.ModelBackend")
    return may_force.exclude(pk=maker.pk) if maker is not None else may_force


def hold_conflict(lane: Lane, held: Held) -> Conflict:
    hold = held.hold
    return Conflict(
        what=_("The lane was on hold already; nothing was changed."),
        who=_who(hold.by),
        at=hold.started_at,
        now_is=_now_is(lane),
    )


def _who(person: Any) -> str:
    return person.get_username() if person is not None else _("by the system")


def _now_is(lane: Lane) -> Sequence[tuple[Text, Text]]:
    run = lane.run
    if run is None:
        return [(_("Lane"), _("on hold"))]
    return [(_("Stage"), stage_name(run)), (_("Cap"), count(lane.cap))]


def stage_name(run: StageRun) -> str:
    return _("stage %(number)d, %(name)s") % {"number": run.number, "name": run.name}


def what_was_met(reason: str, params: Mapping[str, Any]) -> str:
    """By a hold's reason and parameters: what to change, or what the last call ended with that put the lane on hold.

    The first line of what the attempt says, without what a server said itself: that stands with the attempt alone.
    """
    detail = params.get("detail") if reason in _HELD_BY_CALLS else ""
    if not isinstance(detail, str) or not detail.strip():
        return ""
    if status := _STATUS.match(detail):
        return _("The model server answers with HTTP %(status)s.") % {"status": status[1]}
    first = detail.splitlines()[0]
    return _(first.partition(": ")[0] if reason == HoldReason.AUTO_ERRORS else first)


#: Holds whose detail is a sentence of ours. Of an overloaded server it is the server's.
_HELD_BY_CALLS = (HoldReason.AUTO_MISCONFIGURED, HoldReason.AUTO_UNAVAILABLE, HoldReason.AUTO_ERRORS)
_STATUS = re.compile(r"(\d{3}): ")
#: Written in English with the attempts, and translated here.
_ANSWERS_THAT_ARE_NONE = (
    gettext_noop("The answer is empty."),
    gettext_noop("The answer is no JSON."),
    gettext_noop("The answer broke off"),
    gettext_noop("What came is no answer of HTTP."),
    gettext_noop("The answer did not end within the time limit."),
)


def listed(names: Sequence[str]) -> str:
    """Names in a row, in the reader's way of writing one."""
    return _(", ").join(names)

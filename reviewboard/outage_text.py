"""An outage in the reader's language: its one line, what it waits for, and each entry of its log as a sentence."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from queue_core.figures import LaneFigures
from queue_core.models import Lane, Outage, OutageEntry
from queue_core.ramp import EntryCode, OutageActed, OutageOutcome
from queue_core.states import HoldForm
from reviewboard.ramp_text import listed, stage_name
from reviewboard.shapes import Conflict
from reviewboard.templatetags.board import count
from reviewboard.where_text import hold_reason, moment

type Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class OutageLine:
    """The open outage of a lane's connection, on its card and its page."""

    text: str
    url: str


def open_line(found: LaneFigures) -> OutageLine | None:
    outage = found.open_outage
    if outage is None:
        return None
    values = {"since": moment(outage.opened_at), "cause": hold_reason(outage.cause)}
    text = _("An outage of the model has been open since %(since)s: %(cause)s.") % values
    if found.outage_lanes:
        text = ngettext(
            "An outage of the model has been open since %(since)s: %(cause)s. Its lane: %(lanes)s.",
            "An outage of the model has been open since %(since)s: %(cause)s. Its lanes: %(lanes)s.",
            len(found.outage_lanes),
        ) % {**values, "lanes": lane_names(found.outage_lanes)}
    return OutageLine(text, outage_url(outage))


def closed_line(outage: Outage | None) -> OutageLine | None:
    """The last outage of a lane's connection, if it is over."""
    if outage is None or outage.closed_at is None:
        return None
    text = _("The last outage of the connection was from %(opened)s to %(closed)s: %(cause)s.") % {
        "cause": hold_reason(outage.cause),
        "opened": moment(outage.opened_at),
        "closed": moment(outage.closed_at),
    }
    return OutageLine(text, outage_url(outage))


def outage_url(outage: Outage) -> str:
    return reverse("outage", args=[outage.pk])


def lane_names(lanes: Sequence[Lane]) -> str:
    return listed([str(lane) for lane in lanes])


def unsteady_text(lane: Lane) -> str:
    """Why a lane keeps its outage open."""
    if lane.run is None:
        return _("%(lane)s is on hold.") % {"lane": lane}
    return _("%(lane)s runs %(stage)s, which is not its last.") % {"lane": lane, "stage": stage_name(lane.run)}


def close_conflict(acted: OutageActed) -> Conflict:
    """Why an outage was not closed."""
    outage = acted.outage
    if acted.outcome == OutageOutcome.NOT_STEADY:
        what = _("It can be closed when every lane of it runs its last stage.")
        return Conflict(what=what, now_is=[(_("Lane"), unsteady_text(lane)) for lane in acted.lanes])
    return Conflict(
        what=_("The outage is closed already."),
        who=outage.closed_by.get_username() if outage.closed_by else "",
        at=outage.closed_at,
        url=outage_url(outage),
        url_label=_("The outage"),
    )


def act_conflict(acted: OutageActed) -> Conflict:
    """Why a note or a hand-over was not written, or an outage not opened."""
    outage = acted.outage
    lead = outage.lead_on_duty.get_username() if outage.lead_on_duty else _("nobody")
    if acted.outcome == OutageOutcome.OTHER_LEAD:
        return Conflict(what=_("Another lead is on duty by now."), now_is=[(_("Lead on duty"), lead)])
    if acted.outcome == OutageOutcome.ALREADY_OPEN:
        return Conflict(
            what=_("An outage of this connection is open already."),
            who=outage.opened_by.get_username() if outage.opened_by else _("the system"),
            at=outage.opened_at,
            url=outage_url(outage),
            url_label=_("The outage"),
        )
    return close_conflict(acted)


def entry_text(entry: OutageEntry) -> str:
    """What happened; its code where a later version wrote one that this one does not know."""
    if entry.code not in _SENTENCES:
        return entry.code
    values = {
        **entry.params,
        "person": entry.by.get_username() if entry.by else _("the system"),
        "lane": entry.lane or entry.params.get("lane", ""),
    }
    return _SENTENCES[EntryCode(entry.code)](values)


def _opened(values: Values) -> str:
    return _("The outage was opened by %(person)s: %(cause)s.") % {**values, "cause": hold_reason(values["cause"])}


def _held(values: Values) -> str:
    words = {**values, "reason": hold_reason(values["reason"])}
    if values["automatic"]:
        return _("%(lane)s put itself on hold: %(reason)s.") % words
    if values["form"] == HoldForm.REFUSE:
        return _("%(person)s put %(lane)s on hold and refused the running results: %(reason)s.") % words
    return _("%(person)s put %(lane)s on hold: %(reason)s.") % words


def _raised(values: Values) -> str:
    return ngettext(
        "%(person)s raised %(lane)s to stage %(stage)s: at most %(cap)s call at once.",
        "%(person)s raised %(lane)s to stage %(stage)s: at most %(cap)s calls at once.",
        values["cap"],
    ) % _counted(values)


def _resumed(values: Values) -> str:
    return ngettext(
        "%(person)s resumed %(lane)s at stage %(stage)s: at most %(cap)s call at once.",
        "%(person)s resumed %(lane)s at stage %(stage)s: at most %(cap)s calls at once.",
        values["cap"],
    ) % _counted(values)


def _stepped_down(values: Values) -> str:
    return ngettext(
        "%(person)s stepped %(lane)s down to stage %(stage)s: at most %(cap)s call at once.",
        "%(person)s stepped %(lane)s down to stage %(stage)s: at most %(cap)s calls at once.",
        values["cap"],
    ) % _counted(values)


def _cap_set(values: Values) -> str:
    return ngettext(
        "%(person)s set the cap of %(lane)s to %(cap)s call at once.",
        "%(person)s set the cap of %(lane)s to %(cap)s calls at once.",
        values["cap"],
    ) % _counted(values)


def _policy_forced(values: Values) -> str:
    return _("%(person)s put version %(policy)s of the policy of %(lane)s into force.") % values


def _recalled(values: Values) -> str:
    words = {**values, "decisions": count(values["decisions"])}
    return (
        ngettext(
            "%(person)s recalled %(decisions)s decision of %(lane)s.",
            "%(person)s recalled %(decisions)s decisions of %(lane)s.",
            values["decisions"],
        )
        % words
    )


def _run_accepted(values: Values) -> str:
    words = {**values, "decisions": count(values["decisions"])}
    return (
        ngettext(
            "%(person)s accepted a run of %(lane)s that had ended: %(decisions)s decision goes out.",
            "%(person)s accepted a run of %(lane)s that had ended: %(decisions)s decisions go out.",
            values["decisions"],
        )
        % words
    )


def _counted(values: Values) -> dict[str, Any]:
    return {**values, "cap": count(values["cap"])}


_SENTENCES: dict[str, Callable[[Values], str]] = {
    EntryCode.OPENED: _opened,
    EntryCode.HELD: _held,
    EntryCode.RAISED: _raised,
    EntryCode.RESUMED: _resumed,
    EntryCode.STEPPED_DOWN: _stepped_down,
    EntryCode.CAP_SET: _cap_set,
    EntryCode.POLICY_FORCED: _policy_forced,
    EntryCode.RECALLED: _recalled,
    EntryCode.RUN_ACCEPTED: _run_accepted,
    EntryCode.HANDED_OVER: lambda values: _("%(person)s put %(to)s on duty:") % values,
    EntryCode.NOTE: lambda values: _("%(person)s noted:") % values,
    EntryCode.CLOSED: lambda values: _("%(person)s declared steady running and closed the outage.") % values,
}

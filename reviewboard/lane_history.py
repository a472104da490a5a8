"""What happened to a lane: runs and holds with what people saw, and the acts of the audit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from queue_core.models import AuditEntry, Hold, Lane, StageRun
from queue_core.states import HoldForm, RunEnd
from queue_core.usage import Usage, usage_of_runs
from reviewboard.act_names import DENIED, act_name
from reviewboard.ramp_text import figure_name, measure_text, stage_name, what_was_met
from reviewboard.shapes import Text, Tone
from reviewboard.templatetags.board import count, count_capped
from reviewboard.where_text import hold_reason

SHOWN = 12


@dataclass(frozen=True, slots=True)
class Chapter:
    """One run or one hold. `frozen` are the figures that were kept beside a raise."""

    what: Text
    tone: Tone
    at: datetime
    until: datetime | None
    ended: Text
    who: str
    why: str
    override: str
    usage: Text
    frozen: Sequence[tuple[Text, Text]]


@dataclass(frozen=True, slots=True)
class Act:
    at: datetime
    who: str
    what: Text
    why: str


def history(lane: Lane) -> list[Chapter]:
    """The newest first."""
    newest = StageRun.objects.filter(lane=lane).select_related("raised_by").order_by("-started_at")[:SHOWN]
    holds = Hold.objects.filter(lane=lane).select_related("by").order_by("-started_at")[:SHOWN]
    runs = list(newest)
    usage = usage_of_runs([run.pk for run in runs]) or {}
    chapters = [*(_of_run(run, usage.get(run.pk)) for run in runs), *map(_of_hold, holds)]
    return sorted(chapters, key=lambda one: one.at, reverse=True)[:SHOWN]


def acts(lane: Lane) -> list[Act]:
    entries = AuditEntry.objects.filter(lane=lane).exclude(act=DENIED).order_by("-pk")[:SHOWN]
    return [Act(one.at, _actor(one), _what(one), one.reason) for one in entries]


def _actor(entry: AuditEntry) -> str:
    is_system = entry.actor_id is None and entry.key_id is None
    return _("the system") if is_system else entry.actor_name


def _what(entry: AuditEntry) -> Text:
    """An act with what it was about, where its name alone says too little."""
    version = (entry.after or {}).get("policy")
    if entry.act == "policy.forced" and version is not None:
        return _("put version %(version)s of the policy into force") % {"version": version}
    return act_name(entry.act)


def _usage_text(usage: Usage | None) -> Text:
    if usage is None or not usage.total:
        return ""
    return ngettext("%(tokens)s tokens in %(calls)s call", "%(tokens)s tokens in %(calls)s calls", usage.calls) % {
        "tokens": count(usage.total),
        "calls": count(usage.calls),
    }


def _of_run(run: StageRun, usage: Usage | None) -> Chapter:
    return Chapter(
        what=stage_name(run),
        tone=Tone.INFO,
        at=run.started_at,
        until=run.ended_at,
        ended=RunEnd(run.ended_as).label if run.ended_as else _("runs now"),
        who=run.raised_by.get_username() if run.raised_by else _("the system"),
        why=run.reason,
        override=run.override_reason,
        usage=_usage_text(usage),
        frozen=frozen_figures(run.figures),
    )


def _of_hold(hold: Hold) -> Chapter:
    return Chapter(
        what=_("on hold") if hold.form == HoldForm.HOLD else _("on hold, running results refused"),
        tone=Tone.HOLD,
        at=hold.started_at,
        until=hold.ended_at,
        ended=_("ended") if hold.ended_at else _("stands now"),
        who=hold.by.get_username() if hold.by else _("the lane itself"),
        why=hold_reason(hold.reason),
        override=hold.note or what_was_met(hold.reason, hold.params),
        usage="",
        frozen=(),
    )


def frozen_figures(kept: Mapping[str, Any]) -> list[tuple[Text, Text]]:
    """Figures as they were frozen. What an older version did not keep is left out."""
    rows: list[tuple[Text, Text]] = [
        (
            figure_name(line["figure"]),
            _("%(measured)s, limit %(limit)s, of %(sample)s calls")
            % {
                "measured": measure_text(line["figure"], line["measured"]),
                "limit": measure_text(line["figure"], line["limit"]),
                "sample": line["sample"],
            },
        )
        for line in kept.get("lines", [])
    ]
    load = kept.get("load") or {}
    names = {
        "waiting": _("waiting"),
        "last_attempt": _("of them on the last attempt"),
        "running": _("running"),
        "people_waiting": _("waiting for people"),
    }
    rows += [(name, count_capped(load[key], 20_000)) for key, name in names.items() if key in load]
    return rows

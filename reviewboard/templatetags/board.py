"""Times, states, counts and strangers' text as the pages write them. `{% load board %}`."""

from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from django import template
from django.conf import settings
from django.template.defaultfilters import date as format_date
from django.utils import timezone
from django.utils.formats import number_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from queue_core import rights
from queue_core.clock import DATABASE_CLOCK
from queue_core.states import DeadlineKind, Exposure, JobState
from reviewboard import visible
from reviewboard.icons import drawing_of
from reviewboard.models import Person

register = template.Library()

COUNT_CAP = 10_000
EXACT, EXACT_DAY = "Y-m-d H:i:s", "Y-m-d H:i"


@register.simple_tag
def icon(name: str) -> SafeString:
    """A shape of 16 by 16 in the text's colour. It never stands alone: a word is beside it."""
    return drawing_of(name)


@register.simple_tag
def sign_on_name() -> str:
    """What the button of single sign-on calls the provider; "" where there is none."""
    sign_on = settings.SIGN_ON
    return (sign_on.name or urlsplit(sign_on.issuer).hostname or sign_on.issuer) if sign_on else ""


@register.simple_tag
def when(at: datetime | None, style: str = "relative") -> SafeString | str:
    """A moment. board.js writes "4 min ago"; without it, and on hover, the exact time with its zone stands.

    Styles: relative, both ("16:38 (4 min ago)"), exact (never rewritten).
    """
    if at is None:
        return "–"
    local = timezone.localtime(at)
    exact = format_date(local, EXACT)
    return format_html(
        '<time datetime="{}" title="{}" data-when="{}" data-short="{}">{}</time>',
        at.isoformat(),
        _("%(time)s, %(zone)s") % {"time": exact, "zone": zone_label(local)},
        style,
        format_date(local, "H:i"),
        exact if style == "exact" else format_date(local, EXACT_DAY),
    )


@register.simple_tag
def countdown(until: datetime | None, label: str = "", *, warns: bool = True) -> SafeString | str:
    """Time left. board.js counts it down and warns at 60 s and 20 s; without it the end stands.

    A time that the reader does nothing about, such as a worker's lease of some seconds, `warns` of nothing.
    """
    if until is None:
        return "–"
    local = timezone.localtime(until)
    return format_html(
        '<time class="countdown" datetime="{}" title="{}" data-countdown="{}"{}>{}</time>',
        until.isoformat(),
        _("%(time)s, %(zone)s") % {"time": format_date(local, EXACT), "zone": zone_label(local)},
        label,
        "" if warns else SafeString(" data-quiet"),
        _("until %(time)s") % {"time": format_date(local, "H:i:s")},
    )


@register.simple_tag
def as_of(at: datetime) -> SafeString:
    """The moment a page's figures were read. board.js moves it on when a poll finds nothing new."""
    local = timezone.localtime(at)
    return format_html(
        '<time datetime="{}" title="{}" data-as-of>{}</time>',
        at.isoformat(),
        _("%(time)s, %(zone)s") % {"time": format_date(local, EXACT), "zone": zone_label(local)},
        format_date(local, "H:i:s"),
    )


@register.simple_tag(takes_context=True)
def server_now(context: dict[str, Any]) -> str:
    """The database's time, from which board.js learns how wrong the browser's clock is.

    A page with figures has read it already (`as_of`), so that it is not asked for twice.
    """
    at = context.get("as_of") or DATABASE_CLOCK.now()
    moment: str = at.isoformat()
    return moment


@register.simple_tag(takes_context=True)
def may_somewhere(context: dict[str, Any], permission: str) -> bool:
    """Whether the reader has a permission on every lane or on some: for links to pages that list."""
    user = getattr(context.get("request"), "user", None)
    return isinstance(user, Person) and rights.may_somewhere(user, permission)


@register.simple_tag
def zone_name() -> str:
    return timezone.get_current_timezone_name()


def zone_label(local: datetime) -> str:
    """The zone's name and what it is off UTC just then, because a zone's name alone hides summer time."""
    name = timezone.get_current_timezone_name()
    return name if name == "UTC" else f"{name} (UTC{local:%:z})"


@register.filter
def duration(length: timedelta | float | None) -> str:
    """A length in its two largest units: 41 min 10 s, 3 h 12 min, 2 d. board.js writes the same."""
    if length is None:
        return "–"
    total = length.total_seconds() if isinstance(length, timedelta) else float(length)
    seconds = int(max(total, 0))
    if 0 < total < 10 and total != seconds:
        return _("%(s)s s") % {"s": number_format(round(total, 1), 1)}
    days, hours, minutes, rest = seconds // 86400, seconds // 3600 % 24, seconds // 60 % 60, seconds % 60
    if days:
        return _("%(d)s d %(h)s h") % {"d": days, "h": hours} if hours else _("%(d)s d") % {"d": days}
    if hours:
        return _("%(h)s h %(m)s min") % {"h": hours, "m": minutes} if minutes else _("%(h)s h") % {"h": hours}
    if minutes:
        return _("%(m)s min %(s)s s") % {"m": minutes, "s": rest} if rest else _("%(m)s min") % {"m": minutes}
    return _("%(s)s s") % {"s": rest}


@register.filter
def count(value: int | None) -> str:
    return "–" if value is None else number_format(value, force_grouping=True)


@register.filter
def count_capped(value: int | None, cap: int = COUNT_CAP) -> str:
    """A count that was read up to `cap + 1` and no further: "10,000+" above it."""
    if value is None:
        return "–"
    if value > cap:
        return _("%(count)s+") % {"count": number_format(cap, force_grouping=True)}
    return number_format(value, force_grouping=True)


@register.filter
def trend(rate: float | None) -> str:
    """By how many something grows a minute: "+198/min". Nothing below one in a minute: that is noise."""
    if rate is None or abs(rate) < 1:
        return ""
    return _("%(rate)s/min") % {"rate": f"{'+' if rate > 0 else '−'}{count(round(abs(rate)))}"}


@register.filter
def visible_text(value: object) -> SafeString:
    """Strangers' text: escaped, isolated from its surroundings, hidden characters shown."""
    return format_html('<bdi dir="auto" class="strange">{}</bdi>', visible.visible(str(value)))


@register.filter
def visible_id(value: object) -> SafeString:
    """An id from outside: as visible_text, and odd or outer spaces are shown too."""
    return format_html('<bdi dir="auto" class="strange id">{}</bdi>', visible.visible(str(value), strict=True))


@register.simple_tag
def state_badge(state: str) -> SafeString:
    """The state's word, never translated, its shape, and its gloss in the reader's language."""
    return format_html(
        '<span class="state state-{}">{}<span class="state-word" translate="no">{}</span>'
        ' <span class="state-gloss">{}</span></span>',
        state.lower(),
        drawing_of(f"state-{state.lower()}"),
        state,
        state_gloss(state),
    )


@register.filter
def state_gloss(state: str) -> str:
    return {
        JobState.WAITING: _("in the queue"),
        JobState.LEASED: _("being reviewed"),
        JobState.DONE: _("reviewed by the model"),
        JobState.DEAD: _("no model result; for people"),
    }[JobState(state)]


@register.simple_tag
def severity_chip(severity: int) -> SafeString:
    text = {
        0: _("severity 0: low"),
        1: _("severity 1: usual"),
        2: _("severity 2: serious"),
        3: _("severity 3: danger to life, children, terror"),
    }[severity]
    return format_html(
        '<span class="chip severity-{}" title="{}"><span class="chip-bars" aria-hidden="true">{}</span> {}</span>',
        severity,
        text,
        "▮" * (severity + 1) + "▯" * (3 - severity),
        _("severity %(severity)s") % {"severity": severity},
    )


@register.simple_tag
def exposure_chip(exposure: str) -> SafeString:
    """What the content does while it waits. LIVE is loud, because waiting costs somebody."""
    return format_html(
        '<span class="chip exposure-{}">{}{}</span>',
        exposure,
        drawing_of(f"exposure-{exposure}"),
        Exposure(exposure).label,
    )


@register.simple_tag
def deadline_chip(kind: str) -> SafeString:
    text = _("hard deadline") if kind == DeadlineKind.HARD else _("service target")
    return format_html(
        '<span class="chip deadline-{}" title="{}">{}{}</span>',
        kind,
        DeadlineKind(kind).label,
        drawing_of(f"deadline-{kind}"),
        text,
    )


@register.filter
def more_layers(number: int) -> str:
    return ngettext("%(number)d more layer", "%(number)d more layers", number) % {"number": number}


@register.filter
def unlocalized(value: float) -> str:
    """A number for an attribute: with a point, whatever the reader's language puts there."""
    return f"{value:g}"


@register.filter
def short_number(value: float | None) -> str:
    """A chart's number: whole where it is whole, one digit where it is not."""
    if value is None:
        return "–"
    whole = float(value).is_integer()
    return number_format(value, 0 if whole else 1, force_grouping=True)

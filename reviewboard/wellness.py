"""What looking at bad things asks for: pictures grey and blurred, words hidden until asked, breaks offered.

Each is a person's own setting, with a cautious start for pictures. Nobody but the person sees the counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from queue_core.models import Assignment
from reviewboard.models import Person

#: No item in one's hands for so long is a break.
GAP = timedelta(minutes=5)
#: From here on an item is severe.
SEVERE = 2
#: Assignments looked back at. More within a day is a machine.
MOST_LOOKED_AT = 2_000
DAY = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class Veil:
    """How content is shown to one person. `hides_text`: until asked, by a click or the key u."""

    hides_text: bool
    is_grey: bool
    is_blurred: bool


def veil_of(person: Person, severity: int) -> Veil:
    hides = person.text_hidden == Person.TextHidden.ALWAYS
    hides = hides or (person.text_hidden == Person.TextHidden.SEVERE and severity >= SEVERE)
    return Veil(hides, person.images_grey, person.images_blurred)


@dataclass(frozen=True, slots=True)
class Exposure:
    """What one person looked at: in 24 hours, and since their last break."""

    items: int
    severe: int
    since_break: timedelta
    severe_since_break: int
    offers_break: bool


def exposure(person: Person, *, now: datetime) -> Exposure:
    """Read from the person's own assignments."""
    rows = Assignment.objects.filter(person=person, taken_at__gte=now - DAY).order_by("-taken_at")
    held = [
        (taken_at, min(ended_at or until, now), severity)
        for taken_at, ended_at, until, severity in rows.values_list("taken_at", "ended_at", "until", "item__severity")[
            :MOST_LOOKED_AT
        ]
    ]
    stretch = _since_break(held, now)
    since = now - stretch[-1][0] if stretch else timedelta(0)
    severe = sum(severity >= SEVERE for _taken, _ended, severity in stretch)
    return Exposure(
        items=len(held),
        severe=sum(severity >= SEVERE for _taken, _ended, severity in held),
        since_break=since,
        severe_since_break=severe,
        offers_break=_offers_break(person, since, severe),
    )


def _since_break(held: Sequence[tuple[datetime, datetime, int]], now: datetime) -> list[tuple[datetime, datetime, int]]:
    """Those of `held`, newest first, between which there was no break."""
    stretch, later = [], now
    for one in held:
        if later - one[1] >= GAP:
            break
        stretch.append(one)
        later = min(later, one[0])
    return stretch


def _offers_break(person: Person, since: timedelta, severe: int) -> bool:
    """After the person's own number of minutes or of severe items. 0 is never."""
    by_time = bool(person.break_minutes) and since >= timedelta(minutes=person.break_minutes)
    return by_time or (bool(person.break_severe) and severe >= person.break_severe)


def hidden_categories(person: Person) -> list[str]:
    """What take next passes over for this person."""
    return [name.strip() for name in person.hidden_categories.split(",") if name.strip()]

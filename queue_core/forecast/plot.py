"""What waits over time, drawn: a line of blocks for a terminal, and a drawing as a file of its own."""

from collections.abc import Sequence
from html import escape

from django.utils.translation import gettext as _

from queue_core.forecast.scenario import Played

BLOCKS = " ▁▂▃▄▅▆▇█"
WIDTH, HEIGHT = 960, 440
LEFT, RIGHT, TOP, BOTTOM = 80, 250, 48, 48
MOST_POINTS = 240
#: Readable on white and on black; lines differ by their dash and by the label at their end too.
COLOURS = ("#2a78d6", "#c2410c", "#15803d", "#9333ea", "#b8860b", "#db2777")
DASHES = ("", "8 4", "2 4", "12 4 2 4", "4 2", "1 3")

HEAD = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="{title}">
<style>
  svg {{ background: #fff; font: 13px system-ui, sans-serif; }} text {{ fill: #1f2937; }} .grid {{ stroke: #d1d5db; }}
  .line {{ fill: none; stroke-width: 2; }}
  @media (prefers-color-scheme: dark) {{ svg {{ background: #111827; }} text {{ fill: #e5e7eb; }}
    .grid {{ stroke: #374151; }} }}
</style>
<title>{title}</title>
<text x="{left}" y="24" font-size="16">{title}</text>
"""


def sparkline(played: Played, *, highest: float, width: int = 40) -> str:
    """How much waits, from the start to the horizon, against the highest of all plans."""
    marks = []
    for value in _thinned([point.waiting for point in played.course.points], width):
        height = 0 if highest <= 0 or value < 0.5 else 1 + round((len(BLOCKS) - 2) * value / highest)
        marks.append(BLOCKS[min(height, len(BLOCKS) - 1)])
    return "".join(marks)


def highest_of(played: Sequence[Played]) -> float:
    return max((point.waiting for one in played for point in one.course.points), default=0.0)


def svg(played: Sequence[Played], labels: Sequence[str], *, title: str) -> str:
    """One line a plan and weight: tickets that wait, over hours."""
    highest = _round_up(highest_of(played))
    horizon = max(one.course.horizon for one in played)
    parts = [HEAD.format(width=WIDTH, height=HEIGHT, left=LEFT, title=escape(title))]
    parts += [_level(highest * quarter / 4, highest) for quarter in range(5)]
    parts += [_hour(horizon * sixth / 6, horizon) for sixth in range(7)]
    for place, (one, label) in enumerate(zip(played, labels, strict=True)):
        parts.append(_line(one, label, place, highest=highest, horizon=horizon))
    return "".join([*parts, "</svg>\n"])


def _level(value: float, highest: float) -> str:
    y = _y(value, highest)
    return (
        f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}"/>'
        f'<text x="{LEFT - 8}" y="{y + 4}" text-anchor="end">{value:,.0f}</text>\n'
    )


def _hour(moment: float, horizon: float) -> str:
    text = escape(_("%(hours)s h") % {"hours": f"{moment / 3600:.1f}".removesuffix(".0")})
    return f'<text x="{_x(moment, horizon)}" y="{HEIGHT - BOTTOM + 22}" text-anchor="middle">{text}</text>\n'


def _line(one: Played, label: str, place: int, *, highest: float, horizon: float) -> str:
    points = one.course.points
    chosen = points[:: max(1, len(points) // MOST_POINTS)]
    path = " ".join(f"{_x(point.at, horizon)},{_y(point.waiting, highest)}" for point in chosen)
    colour, dash = COLOURS[place % len(COLOURS)], DASHES[place % len(DASHES)]
    y, x = TOP + 8 + place * 20, WIDTH - RIGHT + 16
    return (
        f'<polyline class="line" stroke="{colour}" stroke-dasharray="{dash}" points="{path}"/>'
        f'<line class="line" stroke="{colour}" stroke-dasharray="{dash}" x1="{x}" x2="{x + 30}" y1="{y}" y2="{y}"/>'
        f'<text x="{x + 38}" y="{y + 4}">{escape(label)}</text>\n'
    )


def _x(moment: float, horizon: float) -> float:
    return round(LEFT + (WIDTH - LEFT - RIGHT) * moment / horizon, 1)


def _y(value: float, highest: float) -> float:
    return round(HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / highest, 1)


def _thinned(values: Sequence[float], width: int) -> list[float]:
    """At most `width` values, each the highest of its stretch: thinning must not hide a peak."""
    if not values:
        return []
    stretch = max(1, -(-len(values) // width))
    return [max(values[start : start + stretch]) for start in range(0, len(values), stretch)]


def _round_up(value: float) -> float:
    """The next of 1, 2, 4, 8 times a power of ten, from 4 on."""
    power = 1.0
    while True:
        for step in (1, 2, 4, 8):
            if power * step >= max(value, 4.0):
                return power * step
        power *= 10

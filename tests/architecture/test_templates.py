"""Rules that hold in every template, so that the strict Content-Security-Policy never has to be loosened."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
COMMENTS = re.compile(r"{#.*?#}|{% comment %}.*?{% endcomment %}", re.DOTALL)

RULES = {
    "hx-on runs script from an attribute": re.compile(r"\bhx-on\b"),
    "a trigger filter needs eval and polls for ever without it": re.compile(r"hx-trigger=\"[^\"]*\["),
    # Not a variable of that name which a tag hands on: {% include … with style="danger" %}.
    "an inline style is blocked": re.compile(r"<style\b|\sstyle=(?![^{%]*%})"),
    "an inline script is blocked": re.compile(r"<script\b(?![^>]*\bsrc=)"),
    "an event attribute is blocked": re.compile(r"\son[a-z]+="),
    "javascript: is no address": re.compile(r"javascript:", re.IGNORECASE),
    "nothing is marked safe": re.compile(r"\|\s*safe\b|{%\s*autoescape\s+off"),
    "nothing comes from another origin": re.compile(r"(?:src|href)=\"https?://"),
}


def test_there_are_templates_to_check() -> None:
    assert TEMPLATES


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_template_keeps_the_rules(path: Path) -> None:
    text = COMMENTS.sub("", path.read_text())

    broken = [rule for rule, pattern in RULES.items() if pattern.search(text)]

    assert broken == []


@pytest.mark.parametrize(
    ("markup", "is_blocked"),
    [
        ('<p style="color: red">', True),
        ('<p {% if lane %}class="on"{% endif %} style="color: {{ colour }}">{% endif %}', True),
        ("<style>p {}</style>", True),
        ('{% include "lane/_form.html" with body="b" style="danger" %}', False),
    ],
)
def test_an_inline_style_is_told_from_a_tag_s_variable(markup: str, is_blocked: bool) -> None:
    assert bool(RULES["an inline style is blocked"].search(markup)) == is_blocked

"""How one person is shown content, and when a break is due. `{% load wellness %}`."""

from typing import Any

from django import template

from reviewboard import wellness
from reviewboard.models import Person
from reviewboard.wellness import Exposure, Veil

register = template.Library()


@register.simple_tag(takes_context=True)
def veil_here(context: dict[str, Any]) -> Veil:
    """The reader's own veil over the content of the page's item or job."""
    shown = context.get("item") or context.get("job")
    return wellness.veil_of(_reader(context), shown.severity if shown is not None else 0)


@register.simple_tag(takes_context=True)
def exposure_here(context: dict[str, Any]) -> Exposure:
    """What the reader looked at today, and whether a break is offered."""
    return wellness.exposure(_reader(context), now=context["as_of"])


def _reader(context: dict[str, Any]) -> Person:
    reader = context["request"].user
    assert isinstance(reader, Person), "pages with content are for signed-in people"
    return reader

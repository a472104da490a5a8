"""Words of the desk. `{% load desk %}`."""

from django import template

from queue_core.models import Item
from reviewboard.item_text import cause_text

register = template.Library()


@register.filter
def cause(item: Item) -> str:
    return cause_text(item.kind, item.cause)

"""The shapes beside the words. Each differs by outline, so that they are told apart without colour."""

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

#: Bodies on a grid of 16 by 16; stroke and fill come from the stylesheet (.icon, .fill).
DRAWINGS = {
    "good": '<circle cx="8" cy="8" r="6.25"/><path d="m5.2 8.2 2 2 3.6-4.2"/>',
    "warn": '<path d="M8 1.9 14.6 13.6H1.4Z"/><path d="M8 6.2v3.4M8 11.6v.2"/>',
    "bad": '<path d="M5.4 1.75h5.2l3.65 3.65v5.2l-3.65 3.65H5.4L1.75 10.6V5.4Z"/><path d="M8 4.8v4M8 11v.2"/>',
    "hold": '<rect x="1.75" y="1.75" width="12.5" height="12.5" rx="3"/><path d="M6.2 5.4v5.2M9.8 5.4v5.2"/>',
    "idle": '<circle cx="8" cy="8" r="6.25" stroke-dasharray="2.2 2"/><path d="M5.5 8h5"/>',
    "info": '<circle cx="8" cy="8" r="6.25"/><path d="M8 7.4v3.8M8 4.8V5"/>',
    "yes": '<path d="m3 8.6 3.2 3.2L13 4.6"/>',
    "no": '<path d="m4 4 8 8M12 4l-8 8"/>',
    "unknown": '<path d="M5.6 6a2.4 2.4 0 1 1 3.5 2.1C8.4 8.5 8 9 8 9.9M8 12.2v.2"/>',
    "state-waiting": '<circle cx="8" cy="8" r="6"/><path d="M8 4.8V8l2.2 1.6"/>',
    "state-leased": '<path d="M5 3.2v9.6L13 8Z"/>',
    "state-done": '<rect x="2.25" y="2.25" width="11.5" height="11.5" rx="2.5"/><path d="m5.2 8.2 2 2 3.6-4.2"/>',
    "state-dead": '<path d="M8 1.9 14.1 8 8 14.1 1.9 8Z"/><path d="m6.2 6.2 3.6 3.6m0-3.6L6.2 9.8"/>',
    "exposure-hidden": '<path d="M2 8s2.2-4 6-4 6 4 6 4-2.2 4-6 4-6-4-6-4Z"/><path d="m3 13 10-10"/>',
    "exposure-limited": '<path d="M2 8s2.2-4 6-4 6 4 6 4-2.2 4-6 4-6-4-6-4Z"/><path d="M6 8h4"/>',
    "exposure-live": '<path d="M2 8s2.2-4 6-4 6 4 6 4-2.2 4-6 4-6-4-6-4Z"/><circle class="fill" cx="8" cy="8" r="2"/>',
    "deadline-service": '<circle cx="8" cy="8.5" r="5.5"/><path d="M8 5.6v2.9h2.2M6.5 1.6h3"/>',
    "deadline-hard": '<path d="M3 14V2M3 3h9.5l-2 3 2 3H3"/>',
    "arrow": '<path d="M3 8h9.5M9 4.5 12.5 8 9 11.5"/>',
    "down": '<path d="m4 6 4 4 4-4"/>',
    "pause": '<path d="M5.5 3.5v9M10.5 3.5v9"/>',
    "person": '<circle cx="8" cy="5.4" r="2.9"/><path d="M2.6 14c.5-3 2.6-4.4 5.4-4.4s4.9 1.4 5.4 4.4"/>',
    "empty": '<path d="M2 9.5 3.800 3h8.400L14 9.5V13H2Z"/><path d="M2 9.5h3.600l.9 1.600h3l.9-1.600H14"/>',
    "filter": '<path d="M2 3h12l-4.7 5.400v4.200l-2.600 1V8.400Z"/>',
}


def drawing_of(name: str) -> SafeString:
    """The shape's SVG; an unknown name is a mistake in a template and says so."""
    body = mark_safe(DRAWINGS[name])  # noqa: S308 - constants of this module
    return format_html(
        '<svg class="icon icon-{}" viewBox="0 0 16 16" aria-hidden="true" focusable="false">{}</svg>', name, body
    )

"""JSON pointers (RFC 6901): how a configuration names a place in an answer."""

import re

from django.utils.translation import gettext as _

from queue_core.errors import ConfigurationFault

MAX_STEPS = 20
_ESCAPE = re.compile(r"~(?![01])")


class Nowhere(LookupError):
    """There is nothing at this place."""


def check_pointer(pointer: object) -> str:
    """Raises ConfigurationFault for a text that is no pointer."""
    if (
        not isinstance(pointer, str)
        or (pointer and not pointer.startswith("/"))
        or pointer.count("/") > MAX_STEPS
        or _ESCAPE.search(pointer)
    ):
        raise ConfigurationFault(_("“%(pointer)s” is no JSON pointer, as /result/score is.") % {"pointer": pointer})
    return pointer


def at(document: object, pointer: str) -> object:
    """What stands at `pointer`. Raises Nowhere."""
    found = document
    for step in pointer.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict) and name in found:
            found = found[name]
        elif isinstance(found, list) and name.isdecimal() and len(name) < 7 and int(name) < len(found):
            found = found[int(name)]
        else:
            raise Nowhere(pointer)
    return found

"""Keys: named in a connection's row, read from a setting or the environment, kept out of everything that is shown."""

import hashlib
import json
import os
import re
from collections.abc import Mapping
from urllib.parse import quote

from django.conf import settings
from django.utils.translation import gettext as _

from queue_core.errors import ConfigurationFault

#: The setting for keys that do not come from the environment: name -> key.
SETTING = "QUEUE_CORE_CONNECTION_KEYS"
#: Else an administrator of connections could name any secret of the process, and an address of their own to get it.
KEY_NAME = re.compile(r"[A-Z][A-Z0-9_]*_(API_KEY|API_TOKEN)")
ADDRESS_NAME = re.compile(r"[A-Z][A-Z0-9_]*_BASE_URL")
HIDDEN = "[hidden]"
SENDABLE = re.compile(r"[!-~]+")
LONG = 8


class Secret:
    """A key that no repr, format, pickle or traceback with locals shows."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The key, for the one place that puts it into a request."""
        return self._value

    @property
    def is_sendable(self) -> bool:
        """Whether a header can carry it. What is put into the environment often has a line break, or two words."""
        return not self._value or SENDABLE.fullmatch(self._value) is not None

    @property
    def is_long(self) -> bool:
        """Whether it stands in a name only if it was put there."""
        return len(self._value) >= LONG

    def scrub(self, text: str) -> str:
        """`text` without the key, as it is or as URLs and JSON write it: a server may quote what it was sent."""
        if not self._value:
            return text
        for written in {self._value, quote(self._value, safe=""), json.dumps(self._value)[1:-1]}:
            text = text.replace(written, HIDDEN)
        return text

    @property
    def digest(self) -> str:
        """Tells two keys apart."""
        return hashlib.sha256(self._value.encode()).hexdigest()

    def __bool__(self) -> bool:
        return bool(self._value)

    def __repr__(self) -> str:
        return f"Secret({HIDDEN!r})" if self._value else "Secret('')"

    def __reduce__(self) -> str | tuple[object, ...]:
        raise TypeError("a key is not written anywhere")


NO_SECRET = Secret("")


def check_key_name(name: str) -> None:
    """Raises ConfigurationFault for a name that no key may have."""
    if name and name not in _from_settings() and not KEY_NAME.fullmatch(name):
        raise ConfigurationFault(
            _(
                "The key's environment variable must end in _API_KEY or _API_TOKEN (capital letters, digits and "
                "underscores), or be named in the setting %(setting)s."
            )
            % {"setting": SETTING}
        )


def key_named(name: str) -> Secret | None:
    """The key of this name; None where this process does not have it. No name: the empty key."""
    if not name:
        return NO_SECRET
    check_key_name(name)
    value = _from_settings().get(name) or os.environ.get(name, "")
    return Secret(value.strip()) if value.strip() else None


def address_named(address: str) -> str:
    """An address as it stands, or `env:NAME_BASE_URL` as this process's environment has it."""
    if not address.startswith("env:"):
        return address
    name = address.removeprefix("env:")
    if not ADDRESS_NAME.fullmatch(name):
        raise ConfigurationFault(_("An address from the environment is written env:NAME, and NAME ends in _BASE_URL."))
    found = os.environ.get(name, "").strip()
    if not found:
        raise ConfigurationFault(_("The environment variable %(name)s is not set here.") % {"name": name})
    return found


def _from_settings() -> Mapping[str, str]:
    found: Mapping[str, str] = getattr(settings, SETTING, {})
    return found

"""Reading a connection's row, so that every mistake is told at the save, with its field and limit."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from django.utils.translation import gettext as _

from queue_core.connections.network.secret import address_named, check_key_name
from queue_core.errors import ConfigurationFault
from queue_core.models import ModelConnection

MOST_AT_ONCE = 500
DEFAULT_AT_ONCE = 100
MAX_TEXT = 2000
#: No space, no line break, no control: some readers of addresses leave them out in silence, and others do not.
URL_TEXT = re.compile(r"[^\s\\\x00-\x1f\x7f]+")


class OptionFault(ConfigurationFault):
    """A field of a connection that its kind cannot use. `field` is the row's."""

    def __init__(self, message: str, *, field: str) -> None:
        super().__init__(message)
        self.field = field


@dataclass(slots=True)
class Options:
    """The options of a row. What was not asked for at the end is a mistake: a misspelt option must not be silent."""

    given: Mapping[str, object]
    _asked: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, row: ModelConnection) -> "Options":
        if not isinstance(row.options, dict):
            raise OptionFault(_("Options are an object, for example {}."), field="options")
        return cls(row.options)

    def whole(self, name: str, default: int, *, most: int) -> int:
        value = self._get(name, default)
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
            raise self._fault(name, _("a whole number from 1 to %(most)d is needed.") % {"most": most})
        return value

    def flag(self, name: str) -> bool:
        value = self._get(name, default=False)
        if not isinstance(value, bool):
            raise self._fault(name, _("true or false is needed."))
        return value

    def text(self, name: str, default: str = "", *, choices: tuple[str, ...] = ()) -> str:
        value = self._get(name, default)
        if not isinstance(value, str) or len(value) > MAX_TEXT or not value.isprintable():
            raise self._fault(name, _("a text of at most %(most)d characters is needed.") % {"most": MAX_TEXT})
        if choices and value not in choices:
            raise self._fault(name, _("one of %(choices)s is needed.") % {"choices": ", ".join(choices)})
        return value

    def mapping(self, name: str, *, most: int) -> dict[str, object]:
        value = self._get(name, {})
        if not isinstance(value, dict) or len(value) > most:
            raise self._fault(name, _("an object of at most %(most)d entries is needed.") % {"most": most})
        return value

    def any(self, name: str) -> object:
        return self._get(name, None)

    def end(self) -> None:
        """Raises OptionFault for an option that nobody asked for."""
        for name in sorted(set(self.given) - self._asked):
            known = ", ".join(sorted(self._asked))
            raise self._fault(str(name)[:64], _("there is no such option. Known: %(known)s.") % {"known": known})

    def _get(self, name: str, default: object) -> object:
        self._asked.add(name)
        return self.given.get(name, default)

    def _fault(self, name: str, message: str) -> OptionFault:
        return OptionFault(f"{name}: {message}", field="options")


def at_once_of(options: Options) -> int:
    return options.whole("at_once", DEFAULT_AT_ONCE, most=MOST_AT_ONCE)


def address_of(row: ModelConnection, default: str = "") -> str:
    """The base address, without a slash at its end. Raises OptionFault for one that is none, or that holds a key."""
    try:
        check_key_name(row.key_env)
    except ConfigurationFault as fault:
        raise OptionFault(str(fault), field="key_env") from fault
    try:
        address = (address_named(row.address) or default).rstrip("/")
        parts = urlsplit(address)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port)
    except ConfigurationFault as fault:
        raise OptionFault(str(fault), field="address") from fault
    except ValueError:
        is_usable = False
    if not is_usable or not URL_TEXT.fullmatch(address):
        raise OptionFault(_("An address that begins with http:// or https:// is needed."), field="address")
    # An empty user, query or fragment is one too: what is written behind it would be swallowed.
    if "@" in parts.netloc or "?" in address or "#" in address:
        raise OptionFault(
            _("The address may hold no user, password, query or fragment: addresses are shown, and a key is named."),
            field="address",
        )
    return address


def model_of(row: ModelConnection, default: str = "") -> str:
    if not (row.model or default):
        raise OptionFault(_("The name of a model is needed."), field="model")
    return row.model or default

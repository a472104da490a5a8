"""From a connection's row to its adapter. A package adds a kind by an entry point, a project by a setting."""

from collections.abc import Callable
from importlib.metadata import entry_points

from django.conf import settings
from django.utils.module_loading import import_string
from django.utils.translation import gettext as _

from queue_core.connections.base import Connection
from queue_core.errors import ConfigurationFault
from queue_core.models import ModelConnection

#: Entry points of installed packages: the name is the kind, the object a factory.
GROUP = "reviewboard.connections"
#: The setting for a project's own adapters: kind -> dotted path of a factory.
SETTING = "QUEUE_CORE_CONNECTIONS"

type Factory = Callable[[ModelConnection], Connection]

_BUILT_IN = {
    "local": "queue_core.connections.local.build",
    "openai-decisions": "queue_core.connections.openai_decisions.build",
    "openai-moderations": "queue_core.connections.openai_moderations.build",
    "systemone": "queue_core.connections.systemone.build",
    "http": "queue_core.connections.http_endpoint.build",
}


def kinds() -> list[str]:
    """Every kind that a connection may have here."""
    return sorted({*_in_project(), *_BUILT_IN, *(point.name for point in entry_points(group=GROUP))})


def build(row: ModelConnection) -> Connection:
    """The adapter of this connection. Cheap: what is slow waits for `prepare`."""
    try:
        adapter = _factory(row.kind)(row)
    except ConfigurationFault:
        raise
    except Exception as error:
        # Foreign code: whatever it raises means that this connection cannot be used as it is set up.
        raise ConfigurationFault(
            _("The adapter of kind “%(kind)s” could not be loaded: %(error)s") % {"kind": row.kind, "error": error}
        ) from error
    if not isinstance(adapter, Connection) or adapter.at_once < 1:
        raise ConfigurationFault(
            _("The adapter of kind “%(kind)s” does not offer what a connection must.") % {"kind": row.kind}
        )
    return adapter


def _factory(kind: str) -> Factory:
    # The project's own word comes first, so that it may replace a kind on purpose; a package cannot replace ours.
    path = _in_project().get(kind) or _BUILT_IN.get(kind)
    factory: Factory = import_string(path) if path else _from_package(kind)
    return factory


def _from_package(kind: str) -> Factory:
    points = list(entry_points(group=GROUP, name=kind))
    if not points:
        raise ConfigurationFault(
            _("There is no adapter of kind “%(kind)s”. Known kinds: %(kinds)s.")
            % {"kind": kind, "kinds": ", ".join(kinds())}
        )
    if len(points) > 1:
        raise ConfigurationFault(
            _("Several packages offer the kind “%(kind)s”: %(packages)s. Uninstall all but one.")
            % {"kind": kind, "packages": ", ".join(sorted(point.value for point in points))}
        )
    factory: Factory = points[0].load()
    return factory


def _in_project() -> dict[str, str]:
    found: dict[str, str] = getattr(settings, SETTING, {})
    return found

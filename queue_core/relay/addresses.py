"""Which addresses may be called. Names are resolved here, and the sender connects to the very address that was found.

A name that is checked and then resolved again by whoever connects may lead elsewhere the second time.
"""

import ipaddress
import logging
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as TookTooLong
from dataclasses import dataclass
from functools import lru_cache
from socket import SOCK_STREAM, getaddrinfo
from urllib.parse import SplitResult, urlsplit

from django.conf import settings
from django.utils.translation import gettext as _

from queue_core.errors import ConfigurationFault, InvalidRequest
from queue_core.models.endpoints import MAX_ADDRESS

logger = logging.getLogger(__name__)

type Address = ipaddress.IPv4Address | ipaddress.IPv6Address
type Network = ipaddress.IPv4Network | ipaddress.IPv6Network

PORTS = {"https": 443, "http": 80}
#: Seconds for a name. The system's own resolver may take several times as long.
RESOLVE_WITHIN = 5.0
#: RFC 6052: an IPv4 address inside an IPv6 one, which a gateway would unwrap.
NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
#: RFC 5214: the last half of an IPv6 address that is an IPv4 one, with and without the bit for "unique in the world".
ISATAP = (0x00005EFE, 0x02005EFE)
#: Inside all the same, whatever the standard library says of them: site-local addresses, which were given up and are
#: still routed, the anycast of 6to4 relays, addresses for documents, and the host of an Azure machine, which answers it
#: on a public number.
NEVER_PUBLIC = tuple(
    ipaddress.ip_network(network) for network in ("fec0::/10", "192.88.99.0/24", "3fff::/20", "168.63.129.16/32")
)

_resolvers = ThreadPoolExecutor(8, thread_name_prefix="resolve")


class AddressRefused(Exception):
    """The address may not be called. The sentence names the address and the reason, and nothing that it answered."""


class NameUnknown(Exception):
    """The name has no address, or none was told in time."""


@dataclass(frozen=True, slots=True)
class Target:
    """A URL in its parts. `host` as in the URL, without brackets."""

    scheme: str
    host: str
    port: int
    path: str


def check_address(url: str) -> Target:
    """The target of a URL that may be called as it resolves now.

    Raises InvalidRequest with field `address` otherwise, for a form or an API. It is asked again at each try.
    """
    target = parsed(url)
    try:
        found = resolved(target)
    except (AddressRefused, NameUnknown) as fault:
        raise InvalidRequest(str(fault), field="address") from fault
    assert found
    return target


def parsed(url: str) -> Target:
    """Raises InvalidRequest where the text is no http address or holds what an address must not."""
    if len(url) > MAX_ADDRESS:
        raise _invalid(_("At most %(most)d characters.") % {"most": MAX_ADDRESS})
    if not url.isascii() or any(character.isspace() or not character.isprintable() for character in url):
        raise _invalid(_("An address is ASCII without spaces; write other letters as a browser sends them."))
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise _invalid(_("This is no address.")) from error
    if parts.scheme not in PORTS or not parts.hostname or port == 0:
        raise _invalid(_("An address begins with https:// and names a host."))
    if parts.username is not None or parts.password is not None or parts.fragment:
        raise _invalid(_("An address holds no user, password or fragment."))
    return Target(parts.scheme, parts.hostname, port or PORTS[parts.scheme], _path(parts))


def resolved(target: Target) -> list[str]:
    """The addresses that the target's name has now, each of which may be called.

    Raises AddressRefused if any of them may not: a name that leads to both is not to be trusted. NameUnknown if there
    is none.
    """
    found = _lookup(target.host, target.port)
    for text in found:
        check_number(text, scheme=target.scheme)
    return found


def check_number(text: str, *, scheme: str) -> None:
    """Raise AddressRefused unless this IP address may be called with this scheme."""
    address = ipaddress.ip_address(text.partition("%")[0])
    if any(address in network for network in allowed_networks()):
        return
    if not _is_public(address):
        raise AddressRefused(
            _("%(address)s is not a public address. Name its network in WEBHOOK_ALLOWED_NETWORKS if you mean it.")
            % {"address": address}
        )
    if scheme != "https":
        raise AddressRefused(_("Outside of WEBHOOK_ALLOWED_NETWORKS only https is allowed."))


def is_allowed_inside(text: str) -> bool:
    """Whether the address is an inner one that was allowed on purpose: what it answers is not kept."""
    return not _is_public(ipaddress.ip_address(text.partition("%")[0]))


def _is_public(address: Address) -> bool:
    inner = _inner(address)
    if inner is not None:
        return _is_public(inner)
    if any(address in network for network in NEVER_PUBLIC):
        return False
    return address.is_global and not address.is_multicast and not address.is_reserved and not address.is_unspecified


def _inner(address: Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address that an IPv6 one stands for."""
    if isinstance(address, ipaddress.IPv4Address):
        return None
    if address in NAT64 or int(address) >> 32 & 0xFFFFFFFF in ISATAP:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)


def allowed_networks() -> tuple[Network, ...]:
    """QUEUE_CORE_ALLOWED_NETWORKS. Raises ConfigurationFault for what is no network."""
    return _networks(tuple(getattr(settings, "QUEUE_CORE_ALLOWED_NETWORKS", ())))


@lru_cache(maxsize=8)
def _networks(texts: tuple[str, ...]) -> tuple[Network, ...]:
    try:
        return tuple(ipaddress.ip_network(text.strip()) for text in texts)
    except ValueError as error:
        raise ConfigurationFault(f"WEBHOOK_ALLOWED_NETWORKS: {error}") from error


def _lookup(host: str, port: int) -> list[str]:
    asked: Future[Sequence[tuple[object, ...]]] = _resolvers.submit(getaddrinfo, host, port, type=SOCK_STREAM)
    try:
        rows = asked.result(timeout=RESOLVE_WITHIN)
    except TookTooLong as error:
        asked.cancel()
        raise NameUnknown(_("The name %(host)s could not be resolved in time.") % {"host": host}) from error
    except (OSError, UnicodeError) as error:
        raise NameUnknown(_("The name %(host)s cannot be resolved.") % {"host": host}) from error
    found = list(dict.fromkeys(str(row[4][0]) for row in rows))  # type: ignore[index]
    if not found:
        raise NameUnknown(_("The name %(host)s cannot be resolved.") % {"host": host})
    return found


def _path(parts: SplitResult) -> str:
    path = parts.path or "/"
    return f"{path}?{parts.query}" if parts.query else path


def _invalid(text: str) -> InvalidRequest:
    return InvalidRequest(text, field="address")

"""Whose request it is: the client's address, also behind a proxy, for the audit and for the lockout."""

import ipaddress
from collections.abc import Callable, Sequence

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest, HttpResponse

from queue_core import audit

type Address = ipaddress.IPv4Address | ipaddress.IPv6Address
type Network = ipaddress.IPv4Network | ipaddress.IPv6Network

#: More hops than any real chain of proxies; what stands before them is not read.
MOST_HOPS = 20


class ClientAddressMiddleware:
    """First of all. Puts the client's address into REMOTE_ADDR, where everything that asks for it looks."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response
        self._trusted = networks(settings.TRUSTED_PROXIES) if settings.BEHIND_PROXY else ()

    def __call__(self, request: HttpRequest) -> HttpResponse:
        forwarded = request.META.get("HTTP_X_FORWARDED_FOR", "")
        client = client_of(request.META.get("REMOTE_ADDR", ""), forwarded, self._trusted)
        request.META["REMOTE_ADDR"] = str(client or "")
        with audit.acting_from(str(client) if client else None):
            return self.get_response(request)


def client_of(peer: str, forwarded: str, trusted: Sequence[Network]) -> Address | None:
    """The nearest address that is no proxy of ours; None where it is none at all.

    `forwarded` (X-Forwarded-For) is read from its end, which our own proxies wrote; whatever a client put before that
    is never believed. A peer without an address (a Unix socket) counts as a proxy wherever there are any.
    """
    client = _address(peer)
    if not trusted or not (_is_ours(client, trusted) if client else not peer):
        return client
    for hop in reversed(forwarded.rsplit(",", MOST_HOPS)[-MOST_HOPS:]):
        found = _address(hop.strip())
        if found is None:
            return client
        client = found
        if not _is_ours(client, trusted):
            return client
    return client


def networks(texts: Sequence[str]) -> tuple[Network, ...]:
    """Raises ImproperlyConfigured for a text that is no network."""
    try:
        return tuple(ipaddress.ip_network(text.strip(), strict=False) for text in texts if text.strip())
    except ValueError as fault:
        raise ImproperlyConfigured(
            f"TRUSTED_PROXIES: {fault}. Write networks such as 10.0.0.0/8, by commas."
        ) from fault


def _is_ours(address: Address, trusted: Sequence[Network]) -> bool:
    return any(address in network for network in trusted)


def _address(text: str) -> Address | None:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    # A server that listens on both families tells an IPv4 client so.
    return getattr(address, "ipv4_mapped", None) or address

"""Where a form or a link asks to go next, when that is a page of this site."""

from django.http import HttpRequest
from django.utils.http import url_has_allowed_host_and_scheme


def safe_next(request: HttpRequest, address: str) -> str:
    """The address itself, or "/" in place of one that leads elsewhere.

    A bare word is no address of a page: Django's redirect would take it for the name of a view, and break on others.
    """
    is_ours = url_has_allowed_host_and_scheme(
        address, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return address if is_ours and (address.startswith("/") or "://" in address) else "/"

"""Who may see a page. Anonymous readers are sent to sign in; what one may not see does not exist (404)."""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate

from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest, HttpResponseBase
from django.utils.http import url_has_allowed_host_and_scheme

from queue_core import people
from queue_core.errors import NotPermitted
from reviewboard.models import Person

type View[**P] = Callable[Concatenate[HttpRequest, P], HttpResponseBase]


def needs[**P](*any_of: str) -> Callable[[View[P]], View[P]]:
    """The reader has at least one of these permissions, on every lane or on some.

    On which lane is for the getters of `access` and for the verbs: this only hides the page.
    """

    def decorate(view: View[P]) -> View[P]:
        @wraps(view)
        def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
            if not request.user.is_authenticated:
                return redirect_to_login(_page_of(request))
            if not any(people.may_somewhere(person_of(request), permission) for permission in any_of):
                raise Http404
            try:
                return view(request, *args, **kwargs)
            except NotPermitted as refusal:
                # A right that was lost between the two questions, or one that only the verb asks for.
                raise Http404 from refusal

        return guarded

    return decorate


def _page_of(request: HttpRequest) -> str:
    """Where a reader goes on after sign-in. An act's address has no page: it is the one that the act was sent from."""
    if request.method in ("GET", "HEAD"):
        return request.get_full_path()
    sent_from = request.headers.get("Referer", "")
    is_ours = url_has_allowed_host_and_scheme(
        sent_from, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return sent_from if is_ours else "/"


def person_of(request: HttpRequest) -> Person:
    """The signed-in reader."""
    if not isinstance(request.user, Person):
        raise Http404
    return request.user

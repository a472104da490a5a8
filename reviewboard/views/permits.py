"""Who may see a page. Anonymous readers are sent to sign in; what one may not see does not exist (404)."""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse

from queue_core import people
from queue_core.errors import NotPermitted
from reviewboard.models import Person

type View[**P] = Callable[Concatenate[HttpRequest, P], HttpResponse]


def needs[**P](*any_of: str) -> Callable[[View[P]], View[P]]:
    """The reader has at least one of these permissions. The verbs ask again: this only hides the page."""

    def decorate(view: View[P]) -> View[P]:
        @wraps(view)
        def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
            if not any(people.may(person_of(request), permission) for permission in any_of):
                raise Http404
            try:
                return view(request, *args, **kwargs)
            except NotPermitted as refusal:
                # A right that was lost between the two questions, or one that only the verb asks for.
                raise Http404 from refusal

        return login_required(guarded)

    return decorate


def person_of(request: HttpRequest) -> Person:
    """The signed-in reader."""
    if not isinstance(request.user, Person):
        raise Http404
    return request.user

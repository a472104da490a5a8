"""What was typed into a form whose session was over, carried through the sign-in by the page itself.

The server keeps none of it: the sign-in page holds it as one signed field and sends it with the password. It goes back
only to whoever had been signed in at this browser, which a cookie says by a keyed hash; another person gets nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TypedDict

from django.conf import settings
from django.contrib.auth.forms import AuthenticationForm
from django.core import signing
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils.crypto import constant_time_compare, salted_hmac

from reviewboard.live import wants_partial
from reviewboard.models import Person
from reviewboard.safe_next import safe_next
from reviewboard.typed import Typed, prose_of, whole_fields

COOKIE = "reviewboard_person"
#: As long as a session, and some hours more: who comes back the next day begins anew.
REMEMBERED = timedelta(hours=24)
#: From the form that could not be sent to the end of the sign-in.
HOLDS = timedelta(hours=1)
#: The field of the sign-in page, and the salt of its signature.
FIELD, SALT = "unsent", "reviewboard.unsent"
#: What a button alone sends: nobody misses it.
NOT_TYPED = frozenset({"fence", "next", "then"})
#: What is sent without anybody being signed in, by the names of its addresses.
OPEN = frozenset({"sign_in", "sign_out", "set_language", "sso_begin", "admin:login"})


class _Kept(TypedDict):
    """As it is signed. `who` is the mark of the person whose browser sent it."""

    who: str
    path: str
    back: str
    fields: Typed


@dataclass(frozen=True, slots=True)
class Unsent:
    """A form as it was sent: to `path`, from the page `back`."""

    path: str
    back: str
    fields: Typed

    @property
    def shown(self) -> Typed:
        return prose_of(self.fields)


def unsent_of(sealed: str, person: Person) -> Unsent | None:
    """What a sign-in page carried for this person; None where it is too old, not ours, or somebody else's."""
    found = _opened(sealed)
    if found is None or not constant_time_compare(found["who"], mark_of(person)):
        return None
    return Unsent(found["path"], found["back"], [(name, value) for name, value in found["fields"]])


def carried(request: HttpRequest) -> str:
    """The field as it came with a try to sign in, for the next one; empty where it is worth nothing."""
    sealed = request.POST.get(FIELD, "")
    return sealed if _opened(sealed) is not None else ""


def mark_of(person: Person) -> str:
    """By what a browser is told who was signed in: nobody else can say whose it is."""
    return salted_hmac(SALT, str(person.pk), algorithm="sha256").hexdigest()


class UnsentMiddleware:
    """After authentication, and after the check of forms: only what one of our own pages sent is carried."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if isinstance(request.user, Person):
            _remember(request, response, request.user)
        return response

    def process_view(
        self, request: HttpRequest, _view: Callable[..., HttpResponseBase], _args: object, _kwargs: object
    ) -> HttpResponse | None:
        """The sign-in page in place of an act that nobody is signed in for, with what was typed."""
        if request.method != "POST" or request.user.is_authenticated or wants_partial(request):
            return None
        who, match = request.COOKIES.get(COOKIE, ""), request.resolver_match
        if not who or match is None or match.view_name in OPEN:
            return None
        fields = whole_fields(request) or []
        is_typed = any(name not in NOT_TYPED for name, _value in fields)
        return _sign_in_first(request, fields, who) if is_typed else None


def forget(response: HttpResponse) -> None:
    """At sign-out: whoever comes next is somebody else."""
    response.delete_cookie(COOKIE)


def _sign_in_first(request: HttpRequest, fields: Typed, who: str) -> HttpResponse:
    back = safe_next(request, request.headers.get("Referer", ""))
    kept = _Kept(who=who, path=request.get_full_path(), back=back, fields=fields)
    sealed = signing.dumps(kept, salt=SALT, compress=True)
    context = {"form": AuthenticationForm(request), "next": back, FIELD: sealed, "typed": prose_of(fields)}
    return render(request, "registration/login.html", context, status=401)


def _opened(sealed: str) -> _Kept | None:
    try:
        found: _Kept = signing.loads(sealed, salt=SALT, max_age=HOLDS)
    except signing.BadSignature:
        return None
    return found


def _remember(request: HttpRequest, response: HttpResponse, person: Person) -> None:
    mark = mark_of(person)
    if request.COOKIES.get(COOKIE) == mark:
        return
    response.set_cookie(
        COOKIE,
        mark,
        max_age=REMEMBERED,
        samesite="Lax",
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
    )

"""The demo's sign-in links: one person each, once, from this machine, while the demo runs.

Opening a link only shows a button. Programs that look ahead at links would else use it up before the person does.
"""

import ipaddress

from django.conf import settings
from django.contrib.auth import login
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods
from sesame.tokens import create_token, parse_token

from reviewboard.models import Person

SCOPE = "demo"
BACKEND = "django.contrib.auth.backends.ModelBackend"


def make_token(person: Person) -> str:
    """Void after the person's next sign-in, however that is made, and after SESAME_MAX_AGE."""
    token: str = create_token(person, SCOPE)
    return token


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def demo_sign_in(request: HttpRequest, token: str) -> HttpResponse:
    if not settings.REVIEWBOARD_DEMO or not _is_from_here(request):
        raise Http404
    if request.method == "POST" and _signed_in(request, token):
        return redirect(settings.LOGIN_REDIRECT_URL)
    person = _person_of(token)
    # 410: it may have been right, and will not be again.
    return render(request, "registration/demo_sign_in.html", {"person": person}, status=200 if person else 410)


def _signed_in(request: HttpRequest, token: str) -> bool:
    """Under the person's lock: of two uses of one link the second sees the first one's sign-in."""
    with transaction.atomic():
        person = _person_of(token, is_locked=True)
        if person is not None:
            login(request, person, backend=BACKEND)
    return person is not None


def _person_of(token: str, *, is_locked: bool = False) -> Person | None:
    people = Person.objects.select_for_update() if is_locked else Person.objects.all()
    person: Person | None = parse_token(token, lambda pk: people.filter(pk=pk, is_active=True).first(), SCOPE)
    return person


def _is_from_here(request: HttpRequest) -> bool:
    """A proxy on this machine speaks for others, and says so in a header."""
    if "X-Forwarded-For" in request.headers or "Forwarded" in request.headers:
        return False
    try:
        return ipaddress.ip_address(request.META.get("REMOTE_ADDR", "")).is_loopback
    except ValueError:
        return False

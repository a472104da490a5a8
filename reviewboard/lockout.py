"""Too many failed sign-ins under one name from one address: what is answered, what is on record, who ends it.

The counting is django-axes'; its rows are in the database, so that all web processes count together.
"""

import ipaddress
from typing import Any

from axes.helpers import get_client_username
from axes.signals import user_locked_out
from axes.utils import reset
from django.conf import settings
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.models import AbstractUser
from django.db import transaction
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import ngettext

from queue_core import audit
from queue_core.clock import DATABASE_CLOCK
from reviewboard.models import Person
from reviewboard.unsent import carried


def answer(request: HttpRequest, _response: HttpResponse | None, _credentials: dict[str, Any] | None) -> HttpResponse:
    """The sign-in page with a sentence, the same whether there is such a name or not."""
    minutes = settings.AXES_COOLOFF_TIME.seconds // 60
    said = ngettext(
        "Too many failed tries under this name from here. Try again in %(minutes)d minute, or ask an administrator to "
        "let you in.",
        "Too many failed tries under this name from here. Try again in %(minutes)d minutes, or ask an administrator to "
        "let you in.",
        minutes,
    )
    form = AuthenticationForm(request)
    form.fields["username"].initial = get_client_username(request) or ""
    context = {"form": form, "locked_out": said % {"minutes": minutes}, "next": request.POST.get("next", "")}
    context["unsent"] = carried(request)
    locked = render(request, "registration/login.html", context, status=429)
    locked["Retry-After"] = str(minutes * 60)
    return locked


def place(request: HttpRequest) -> str:
    """Where a try comes from: the address; of an IPv6 one its /64, of which one household has every address."""
    address: str = request.META.get("REMOTE_ADDR", "")
    try:
        network = ipaddress.IPv6Network((address, 64), strict=False)
    except ValueError:
        return address
    return str(network.network_address)


@transaction.atomic
def let_in(person: Person, *, by: AbstractUser) -> bool:
    """Forget the failed tries under a name. False where there were none. Whoever may change people may do it."""
    if not reset(username=person.get_username()):
        return False
    audit.record("person.let_in", now=DATABASE_CLOCK.now(), actor=by, subject=person)
    return True


@receiver(user_locked_out, dispatch_uid="reviewboard.lockout")
def _record(request: HttpRequest, username: str, **_more: Any) -> None:
    """Once, by the try that reached the limit: later ones are told of too. No strangers' names are kept."""
    failures: int | None = getattr(request, "axes_failures_since_start", None)
    person = Person.objects.filter(username=username).first() if failures is not None else None
    if person is not None:
        audit.record(
            "person.locked_out", now=DATABASE_CLOCK.now(), actor=None, subject=person, after={"tries": failures}
        )

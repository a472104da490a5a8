"""Who signed in, and how, on record: by password, by the provider of single sign-on, by the demo's link."""

from django.contrib.auth.signals import user_logged_in
from django.dispatch import receiver
from django.http import HttpRequest

from queue_core import audit
from queue_core.clock import DATABASE_CLOCK
from reviewboard.models import Person

#: By the name of the address where it happened; everywhere else a password was asked.
WAYS = {"sso_arrive": "single sign-on", "demo_sign_in": "link"}


@receiver(user_logged_in, dispatch_uid="reviewboard.sign_in_record")
def _record(request: HttpRequest, user: Person, **_more: object) -> None:
    """Nothing for sessions that a program makes without a request: nobody signed in."""
    if request.resolver_match is None:
        return
    way = WAYS.get(request.resolver_match.url_name or "", "password")
    audit.record("person.signed_in", now=DATABASE_CLOCK.now(), actor=user, subject=user, after={"by": way})

"""Whose call it is: the key in the Authorization header, its scope, and one call of its allowance."""

from typing import cast

from django.http import HttpRequest
from django.utils.translation import gettext as _
from ninja.security import HttpBearer

from queue_core import api_keys
from queue_core.api_keys import KeyFault
from queue_core.clock import DATABASE_CLOCK
from queue_core.models import ApiKey
from queue_core.models.api_keys import KeyScope
from reviewboard.api.problems import Problem

CHALLENGE = {"WWW-Authenticate": 'Bearer realm="reviewboard"'}
INVALID = {"WWW-Authenticate": 'Bearer realm="reviewboard", error="invalid_token"'}


class Key(HttpBearer):
    """`Authorization: Bearer rbk_…` of a key with this scope. Its calls are counted before the scope is looked at."""

    def __init__(self, scope: KeyScope) -> None:
        super().__init__()
        self.scope = scope

    def __call__(self, request: HttpRequest) -> ApiKey:
        kind, _space, presented = request.headers.get("Authorization", "").partition(" ")
        if kind.lower() != self.openapi_scheme or not presented.strip():
            raise Problem("key_missing", _("Send the key as “Authorization: Bearer <key>”."), headers=CHALLENGE)
        return self.authenticate(request, presented.strip())

    def authenticate(self, request: HttpRequest, token: str) -> ApiKey:
        now = DATABASE_CLOCK.now()
        key = api_keys.find(token, now=now)
        if isinstance(key, KeyFault):
            raise Problem(key.value, headers=INVALID)
        allowance = api_keys.charge(key, now=now, address=request.META.get("REMOTE_ADDR") or None)
        request.allowance = allowance  # type: ignore[attr-defined]
        if allowance.is_spent:
            detail = _("This key may make %(rate)d calls per minute.") % {"rate": key.rate}
            wait = str(api_keys.seconds(allowance.wait))
            raise Problem(
                "rate_limited", detail, headers={"Retry-After": wait}, limit=key.rate, unit="calls per minute"
            )
        if not key.has_scope(self.scope):
            raise Problem("scope_missing", _("The key lacks the scope “%(scope)s”.") % {"scope": self.scope.value})
        return key


def key_of(request: HttpRequest) -> ApiKey:
    """The key of a call that a `Key` has let in."""
    return cast("ApiKey", request.auth)  # type: ignore[attr-defined]

"""To the provider and back. Every failure ends on the sign-in page with a sentence, and in the log without a secret."""

import secrets
from typing import Any

import requests
import structlog
from allauth.socialaccount.adapter import get_adapter
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from django.contrib.auth import login
from django.contrib.auth.forms import AuthenticationForm
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from reviewboard.safe_next import safe_next
from reviewboard.sso.accounts import Refusal, account_for
from reviewboard.sso.provider import Talk, Untrusted
from reviewboard.sso.setup import configured

log = structlog.get_logger(__name__)
BACKEND = "django.contrib.auth.backends.ModelBackend"
#: An answer that is no JSON, or lacks what it must have, raises the last two.
FAILURES = (OAuth2Error, Untrusted, requests.RequestException, KeyError, TypeError, ValueError)
SENTENCES: dict[Refusal, Promise] = {
    Refusal.CLOSED: _("This account is closed. Ask an administrator."),
    Refusal.DOMAIN: _("You have no account here, and your mail address gives you none. Ask an administrator."),
    Refusal.AMBIGUOUS: _("It is not clear which account here is yours. Ask an administrator."),
}
UNCLEAR = _("Single sign-on did not work this time. Try again, or sign in with a password.")
STALE = _("That sign-in was begun elsewhere, or too long ago. Try again.")


@never_cache
@require_safe
def begin(request: HttpRequest) -> HttpResponse:
    """By GET, since the form-action of our pages ends at this site, and a provider may pass people on to others. All
    that a stranger's link does here is to let people sign in as themselves."""
    nonce = secrets.token_urlsafe(32)
    provider = get_adapter(request).get_provider(request, provider=configured().issuer)
    next_url = safe_next(request, request.GET.get("next", ""))
    try:
        to_provider: HttpResponse = provider.redirect(
            request, process="login", next_url=next_url, scope=["openid", "profile", "email"],
            auth_params={"nonce": nonce}, nonce=nonce,
        )  # fmt: skip
    except FAILURES as wrong:
        return _failed(request, wrong)
    return to_provider


@never_cache
@require_safe
def arrive(request: HttpRequest) -> HttpResponse:
    """Where the provider sends people back to. The state is this browser's, and opens once."""
    provider = get_adapter(request).get_provider(request, provider=configured().issuer)
    try:
        state = provider.unstash_redirect_state(request, request.GET.get("state", ""))
    except PermissionDenied:
        return _refused(request, STALE)
    if "code" not in request.GET:
        return _failed(request, OAuth2Error())
    try:
        claims = _claims(request, provider.app, state)
    except FAILURES as wrong:
        return _failed(request, wrong)
    person = account_for(claims)
    if isinstance(person, Refusal):
        log.info("sign_on_refused", why=person.value)
        return _refused(request, SENTENCES[person])
    login(request, person, backend=BACKEND)
    return redirect(safe_next(request, state.get("next", "")))


def _claims(request: HttpRequest, app: Any, state: dict[str, Any]) -> dict[str, Any]:
    talk = Talk(request)
    answer = talk.get_access_token_data(
        request, app, talk.get_client(request, app), pkce_code_verifier=state["pkce_code_verifier"]
    )
    return talk.claims(answer, state["nonce"])


def _failed(request: HttpRequest, wrong: Exception) -> HttpResponse:
    """Logged by kind: the packages' errors quote the provider's answer, which may hold a token."""
    why = str(wrong) if isinstance(wrong, Untrusted) else type(wrong).__name__
    log.warning("sign_on_failed", why=why, said=request.GET.get("error", "")[:100])
    return _refused(request, UNCLEAR)


def _refused(request: HttpRequest, sentence: Promise) -> HttpResponse:
    context = {"form": AuthenticationForm(request), "refused": sentence}
    return render(request, "registration/login.html", context, status=403)

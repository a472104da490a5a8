"""What the environment says about single sign-on, and what Django has to be told because of it.

Known without the extra's packages: settings read it first, and say which are missing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from environ import Env

NEEDED = ("OIDC_ISSUER", "OIDC_CLIENT_ID", "OIDC_CLIENT_SECRET")
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
#: Characters: as long as the column is that says whose account an account is.
LONGEST_ISSUER = 200
DOCUMENT = "/.well-known/openid-configuration"
#: Seconds for each of the calls to the provider: its document, the token, its keys, what it knows of the person.
CALL_LIMIT = 5
APPS: tuple[str, ...] = (
    "allauth.account",
    "allauth.socialaccount",
    # Last: it takes the packages' own pages out of the admin when they are in.
    "reviewboard.sso.apps.SignOnConfig",
)
#: The packages refuse to start without it.
MIDDLEWARE = "allauth.account.middleware.AccountMiddleware"
AUTHENTICATION = "django.contrib.auth.middleware.AuthenticationMiddleware"


@dataclass(frozen=True, slots=True)
class SignOn:
    """One provider. `domains` are those whose people get an account when they are new; none: all get one."""

    issuer: str
    client_id: str
    secret: str = field(repr=False)
    name: str = ""
    domains: frozenset[str] = frozenset()


def read(env: Env) -> SignOn | None:
    """None where nothing is configured. Raises ImproperlyConfigured for half of it, and where the extra is missing."""
    issuer, client_id, secret = (env.str(name, default="").strip() for name in NEEDED)
    missing = [name for name, value in zip(NEEDED, (issuer, client_id, secret), strict=True) if not value]
    if len(missing) == len(NEEDED):
        return None
    if missing:
        raise ImproperlyConfigured(
            f"{' and '.join(missing)} must be set too: single sign-on needs {', '.join(NEEDED)}, or none of them."
        )
    _refuse_wrong(issuer)
    if not has_packages():
        raise ImproperlyConfigured("OIDC_ISSUER is set and django-allauth is not installed: uv sync --extra sso")
    domains = frozenset(domain.strip().lower().lstrip("@") for domain in env.list("OIDC_DOMAINS", default=[]))
    return SignOn(issuer, client_id, secret, env.str("OIDC_NAME", default="").strip(), domains - {""})


def configured() -> SignOn:
    """The provider that this site is set up with: asked only where there is one."""
    sign_on: SignOn | None = settings.SIGN_ON
    assert sign_on is not None, "single sign-on is not configured"
    return sign_on


def has_packages() -> bool:
    return all(find_spec(package) is not None for package in ("allauth", "jwt", "requests"))


def _refuse_wrong(issuer: str) -> None:
    """What tokens are signed for travels over TLS, but to this machine itself."""
    parts = urlsplit(issuer)
    is_safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK)
    if not is_safe or not parts.hostname or parts.query or parts.fragment or parts.username:
        raise ImproperlyConfigured("OIDC_ISSUER must be an https:// address without a query: https://id.example/realm")
    if issuer.endswith(DOCUMENT):
        raise ImproperlyConfigured(f"OIDC_ISSUER is the address before {DOCUMENT}: leave that out.")
    if len(issuer) > LONGEST_ISSUER:
        raise ImproperlyConfigured(f"OIDC_ISSUER has {len(issuer)} characters; {LONGEST_ISSUER} at most.")


def middleware_with(middleware: Sequence[str]) -> list[str]:
    """The site's own with the packages' one behind the person's."""
    place = list(middleware).index(AUTHENTICATION) + 1
    return [*middleware[:place], MIDDLEWARE, *middleware[place:]]


def settings_of(sign_on: SignOn) -> dict[str, Any]:
    """The packages' settings. Accounts are told apart by issuer: another provider's subjects are other people."""
    app = {
        "provider_id": sign_on.issuer,
        "name": sign_on.name or "OpenID Connect",
        "client_id": sign_on.client_id,
        "secret": sign_on.secret,
        "settings": {"server_url": sign_on.issuer.rstrip("/") + DOCUMENT},
    }
    return {
        "SOCIALACCOUNT_ADAPTER": "reviewboard.sso.provider.FromSettings",
        "SOCIALACCOUNT_PROVIDERS": {"openid_connect": {"OAUTH_PKCE_ENABLED": True, "APPS": [app]}},
        "SOCIALACCOUNT_REQUESTS_TIMEOUT": CALL_LIMIT,
        "SOCIALACCOUNT_STORE_TOKENS": False,
        "SOCIALACCOUNT_EMAIL_AUTHENTICATION": False,
    }

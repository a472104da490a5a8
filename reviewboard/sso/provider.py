"""The talk with the provider: what a token must be before anything in it is believed.

The packages fetch the provider's document and the token. They do not check a signature on a token that came over TLS,
and know no nonce; here both are checked, as OpenID Connect Core 1.0, 3.1.3.7, has it.
"""

from typing import Any

import jwt
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter, get_adapter
from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.http import HttpRequest
from django.urls import reverse
from django.utils.crypto import constant_time_compare

from reviewboard.sso.setup import configured

#: By a key pair only: with a shared one whoever knows the client's secret could sign.
ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
#: Seconds by which the provider's clock and ours may differ.
LEEWAY = 30
Claims = dict[str, Any]


class Untrusted(Exception):
    """The provider's answer is not what it must be. Says what, and holds nothing of the answer."""


class FromSettings(DefaultSocialAccountAdapter):  # type: ignore[misc]  # the packages have no types
    """The environment's provider and no other: rows in the packages' table of providers are not read."""

    def list_apps(self, request: HttpRequest, provider: str | None = None, client_id: str | None = None) -> list[Any]:
        from allauth.socialaccount.adapter import _build_apps_from_settings

        built = _build_apps_from_settings(provider=provider, client_id=client_id)
        return [app for apps in built.values() for app in apps]


class Talk(OpenIDConnectOAuth2Adapter):  # type: ignore[misc]
    """One sign-in's calls to the provider, each limited in time."""

    def __init__(self, request: HttpRequest) -> None:
        super().__init__(request, configured().issuer)

    @property
    def openid_config(self) -> Claims:
        """Its document. Raises Untrusted where it speaks for another issuer."""
        config: Claims = super().openid_config
        if not isinstance(config, dict) or config.get("issuer") != configured().issuer:
            raise Untrusted("the provider's document names another issuer")
        return config

    def get_callback_url(self, request: HttpRequest, app: Any) -> str:
        return request.build_absolute_uri(reverse("sso_arrive"))

    def claims(self, answer: Claims, nonce: str) -> Claims:
        """What the provider says of the person, believed. Raises Untrusted, or what `requests` raises."""
        token = answer.get("id_token")
        if not isinstance(token, str):
            raise Untrusted("no id_token")
        try:
            said = self._verified(token)
        except (jwt.PyJWTError, KeyError, TypeError, ValueError) as wrong:
            raise Untrusted(f"id_token: {type(wrong).__name__}") from None
        if not constant_time_compare(str(said.get("nonce", "")), nonce):
            raise Untrusted("id_token: another nonce")
        if said.get("azp", configured().client_id) != configured().client_id:
            raise Untrusted("id_token: made for another client")
        if not isinstance(said["sub"], str) or not 0 < len(said["sub"]) <= 191:
            raise Untrusted("id_token: no usable sub")
        return said if "email" in said else self._with_userinfo(said, answer)

    def _verified(self, token: str) -> Claims:
        said: Claims = jwt.decode(
            token,
            self._key_of(token),
            algorithms=ALGORITHMS,
            issuer=configured().issuer,
            audience=configured().client_id,
            leeway=LEEWAY,
            options={"require": ["iss", "aud", "exp", "iat", "sub"]},
        )
        return said

    def _key_of(self, token: str) -> jwt.PyJWK:
        """The one that the token names; unnamed, the only one there is."""
        named = jwt.get_unverified_header(token).get("kid")
        keys = jwt.PyJWKSet.from_dict(self._fetched(self.openid_config["jwks_uri"])).keys
        fitting = [key for key in keys if key.public_key_use in (None, "sig") and named in (None, key.key_id)]
        if len(fitting) != 1:
            raise jwt.InvalidKeyError
        return fitting[0]

    def _with_userinfo(self, said: Claims, answer: Claims) -> Claims:
        """Providers that keep a token small tell the mail address there; of the same person, or it is not believed."""
        address = self.openid_config.get("userinfo_endpoint")
        if not address or not isinstance(answer.get("access_token"), str):
            return said
        more = self._fetched(address, {"Authorization": f"Bearer {answer['access_token']}"})
        if more.get("sub") != said["sub"]:
            raise Untrusted("userinfo: another sub")
        return {**more, **said}

    def _fetched(self, address: str, headers: dict[str, str] | None = None) -> Claims:
        with get_adapter().get_requests_session() as session:
            response = session.get(address, headers=headers)
            response.raise_for_status()
            found = response.json()
        if not isinstance(found, dict):
            raise Untrusted("the provider answered with no object")
        return found


class SignOnProvider(OpenIDConnectProvider):  # type: ignore[misc]
    """The packages' provider, talked to by ours."""

    def get_oauth2_adapter(self, request: HttpRequest) -> Talk:
        return Talk(request)


#: Found by name: the packages ask each app for it.
provider_classes = [SignOnProvider]

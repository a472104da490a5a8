"""Standard Webhooks signatures, and the secrets that make them.

A secret is derived from SECRET_KEY and a random salt: no table holds it, and a copy of the database signs nothing. Its
fingerprint tells which of SECRET_KEY and SECRET_KEY_FALLBACKS it was made under, so that changing that key breaks no
consumer as long as the old one is kept as a fallback.
"""

import base64
import hashlib
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from uuid import UUID

from django.conf import settings
from django.utils.crypto import salted_hmac
from standardwebhooks import Webhook

from queue_core.models import EndpointSecret

PURPOSE = "queue_core.relay.secret"
PREFIX = "whsec_"


class SecretLost(Exception):
    """A secret cannot be made any more: the SECRET_KEY that it was made under is gone."""


def make_secret(salt: UUID) -> str:
    """The secret of a salt under the present SECRET_KEY, as its consumer gets it."""
    return _derived(salt, settings.SECRET_KEY)


def fingerprint(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()[:16]


def secret_of(row: EndpointSecret) -> str:
    """Raises SecretLost."""
    for key in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS):
        secret = _derived(row.salt, key)
        if fingerprint(secret) == row.fingerprint:
            return secret
    raise SecretLost


def secrets_of(rows: Iterable[EndpointSecret], *, now: datetime) -> list[str]:
    """Every secret that still signs: during a rotation the consumer may hold either. Raises SecretLost if none can."""
    running = [row for row in rows if row.ends_at is None or row.ends_at > now]
    found = []
    for row in running:
        try:
            found.append(secret_of(row))
        except SecretLost:
            continue
    if not found:
        raise SecretLost
    return found


def sign(secrets: Sequence[str], key: str, now: datetime, content: bytes) -> dict[str, str]:
    """The three headers of Standard Webhooks for one try: the message's id, this try's time, a signature a secret."""
    moment, text = now.astimezone(UTC), content.decode()
    return {
        "webhook-id": key,
        "webhook-timestamp": str(int(moment.timestamp())),
        "webhook-signature": " ".join(Webhook(secret).sign(key, moment, text) for secret in secrets),
    }


def _derived(salt: UUID, key: str) -> str:
    made = salted_hmac(PURPOSE, salt.hex, secret=key, algorithm="sha256").digest()
    return PREFIX + base64.b64encode(made).decode()

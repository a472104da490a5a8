"""Keys of machines: made, known again, paid for by the call, and revoked.

A key has 256 random bits, so that its plain hash says nothing about it; a slow hash, made for passwords that people can
remember, would be paid for at every call and protect nothing. Its first characters find the row; the rest is compared
in constant time.
"""

import hashlib
import math
import re
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from django.db import connection, transaction
from django.utils.crypto import constant_time_compare
from django.utils.translation import gettext as _

from queue_core import audit
from queue_core.clock import Clock
from queue_core.errors import InvalidRequest
from queue_core.models import ApiKey, ApiKeyUse
from queue_core.models.api_keys import KeyScope
from queue_core.rights import require

if TYPE_CHECKING:
    from collections.abc import Collection

    from django.contrib.auth.models import AbstractUser

MARK = "rbk_"
#: Of the mark and what follows it, which the row keeps in the clear.
PREFIX_LENGTH = 12
READABLE = re.compile(r"rbk_[0-9a-f]{8}_[A-Za-z0-9_-]{1,80}", re.ASCII)
MOST_REASON = 500
MAKING, CHANGING = "add_apikey", "change_apikey"
#: Calls at once, as a share of a minute's: ten seconds' worth, and one at least.
BURST_SHARE = 6

#: One row, one statement, and nobody waits for the disk: a crash forgives the calls of its last moment.
CHARGE = """
UPDATE queue_core_apikeyuse u
SET free_at = greatest(u.free_at, %(now)s) + %(step)s, last_used_at = %(now)s, last_address = %(address)s
FROM (SELECT set_config('synchronous_commit', 'off', true)) s
WHERE u.key_id = %(key)s AND greatest(u.free_at, %(now)s) + %(step)s <= %(now)s + %(window)s
RETURNING u.free_at
"""


class KeyFault(StrEnum):
    """Why a key opens nothing. Only who has the whole key learns more than that it is not known."""

    UNKNOWN = "key_unknown"
    EXPIRED = "key_expired"
    REVOKED = "key_revoked"


@dataclass(frozen=True, slots=True)
class Allowance:
    """What is left of a key's calls. `wait` is how long until the next one is taken; zero: this one was."""

    limit: int
    remaining: int
    refills_in: timedelta
    wait: timedelta = timedelta(0)

    @property
    def is_spent(self) -> bool:
        return self.wait > timedelta(0)


@transaction.atomic
def make(key: ApiKey, *, person: "AbstractUser", clock: Clock) -> str:
    """Store a key that was filled in but for its secret. Returned once, and never again by anything.

    Raises InvalidRequest, with the field, for terms that make no sense together.
    """
    require(person, MAKING)
    now = clock.now()
    check_terms(key.scopes, source=key.source, lanes=key.lanes)
    if key.expires_at is not None and key.expires_at <= now:
        raise InvalidRequest(_("The key would have expired already."), field="expires_at")
    secret = f"{MARK}{secrets.token_hex(4)}_{secrets.token_urlsafe(32)}"
    key.prefix, key.digest = secret[:PREFIX_LENGTH], _digest(secret)
    key.made_at, key.made_by_id = now, person.pk
    key.save()
    ApiKeyUse.objects.create(key=key, free_at=now)
    audit.record("apikey.added", now=now, actor=person, subject=key, after=_terms(key))
    return secret


@transaction.atomic
def revoke(key_id: int, *, person: "AbstractUser", reason: str = "", clock: Clock) -> bool:
    """End a key at once and for all. False: it was revoked before. Calls that are being answered are."""
    require(person, CHANGING)
    reason = reason.strip()
    if "\x00" in reason or len(reason) > MOST_REASON:
        raise InvalidRequest(_("A reason has at most %(most)d characters.") % {"most": MOST_REASON}, field="reason")
    key = ApiKey.objects.select_for_update(no_key=True).get(pk=key_id)
    if key.revoked_at is not None:
        return False
    now = clock.now()
    key.revoked_at, key.revoked_by_id, key.version = now, person.pk, key.version + 1
    key.save(update_fields=["revoked_at", "revoked_by", "version"])
    audit.record("apikey.revoked", now=now, actor=person, subject=key, reason=reason)
    return True


def check_terms(scopes: "Collection[str]", *, source: str, lanes: "Collection[int]") -> None:
    """Raise InvalidRequest for scopes that are none, or that reach further than the key's source and lanes."""
    if not scopes or not set(scopes) <= set(KeyScope.values):
        raise InvalidRequest(_("A key has at least one scope."), field="scopes")
    if KeyScope.DELIVERIES in scopes and (source or lanes):
        # An endpoint is told of tickets of other sources and lanes, too.
        raise InvalidRequest(
            _("A key for deliveries is for all sources and lanes: an endpoint carries messages of all."), field="scopes"
        )


def find(presented: str, *, now: datetime) -> ApiKey | KeyFault:
    """The key that a caller has shown, or why it opens nothing."""
    is_readable = READABLE.fullmatch(presented) is not None
    key = ApiKey.objects.filter(prefix=presented[:PREFIX_LENGTH]).first() if is_readable else None
    if key is None or not constant_time_compare(_digest(presented), key.digest):
        return KeyFault.UNKNOWN
    if key.revoked_at is not None:
        return KeyFault.REVOKED
    if key.expires_at is not None and key.expires_at <= now:
        return KeyFault.EXPIRED
    return key


def charge(key: ApiKey, *, now: datetime, address: str | None = None) -> Allowance:
    """Take one call from what the key may make, in all processes together, and note that it was used.

    Not more than `rate` and ten seconds' worth in any minute. What is refused costs nothing, and is not noted.
    """
    step = timedelta(minutes=1) / key.rate
    limit = max(key.rate // BURST_SHARE, 1)
    window = step * limit
    values: dict[str, Any] = {"key": key.pk, "now": now, "step": step, "window": window, "address": address}
    with connection.cursor() as cursor:
        cursor.execute(CHARGE, values)
        row = cursor.fetchone()
    if row is not None:
        ahead = row[0] - now
        return Allowance(limit, int((window - ahead) / step + 1e-6), ahead)
    free_at = max(ApiKeyUse.objects.values_list("free_at", flat=True).get(pk=key.pk), now)
    # Another process may have been paid back meanwhile: then the next try succeeds at once.
    return Allowance(limit, 0, free_at - now, max(free_at + step - window - now, timedelta(milliseconds=1)))


def seconds(span: timedelta) -> int:
    """Whole seconds for a header, rounded up: whoever waits so long is not too early."""
    return math.ceil(span.total_seconds())


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _terms(key: ApiKey) -> dict[str, object]:
    expires = key.expires_at.isoformat() if key.expires_at is not None else None
    return {
        "prefix": key.prefix,
        "scopes": key.scopes,
        "source": key.source,
        "lanes": key.lanes,
        "rate": key.rate,
        "expires_at": expires,
    }

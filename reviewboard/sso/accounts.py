"""Whose account a provider's person has, and who gets a new one.

A provider's word opens the account that was linked before. Unlinked, it opens the one local account with the same mail
address, where the provider has verified that address; an unverified one opens nothing. A new account has no role: an
administrator gives roles.
"""

import re
import secrets
from enum import Enum
from typing import Any

from allauth.socialaccount.models import SocialAccount
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction

from queue_core import audit
from queue_core.clock import DATABASE_CLOCK
from reviewboard.models import Person
from reviewboard.sso.setup import configured

Claims = dict[str, Any]
LONGEST_NAME = 150


class Refusal(Enum):
    CLOSED = "closed"
    DOMAIN = "domain"
    AMBIGUOUS = "ambiguous"


def account_for(claims: Claims) -> Person | Refusal:
    """The person to sign in, found, linked or made. Of two arrivals at once the second finds what the first made."""
    try:
        return _account_for(claims)
    except IntegrityError:
        return _account_for(claims)


@transaction.atomic
def _account_for(claims: Claims) -> Person | Refusal:
    issuer, subject = configured().issuer, claims["sub"]
    linked = SocialAccount.objects.select_related("user").filter(provider=issuer, uid=subject).first()
    if linked is not None:
        person: Person = linked.user
        return person if person.is_active else Refusal.CLOSED
    mail = verified_mail(claims)
    known = list(Person.objects.select_for_update().filter(email__iexact=mail).order_by("pk")[:2]) if mail else []
    if known:
        return _link(known, issuer, subject)
    domains = configured().domains
    if domains and mail.rpartition("@")[2] not in domains:
        return Refusal.DOMAIN
    return _make(claims, mail, issuer, subject)


def verified_mail(claims: Claims) -> str:
    """The address in small letters; "" where the provider has not verified it, or it is none."""
    mail = claims.get("email")
    verified = claims.get("email_verified")
    # Some providers write the word.
    if not (verified is True or verified == "true") or not isinstance(mail, str):
        return ""
    try:
        validate_email(mail)
    except ValidationError:
        return ""
    return mail.lower() if len(mail) <= LONGEST_NAME else ""


def _link(known: list[Person], issuer: str, subject: str) -> Person | Refusal:
    """A closed account is not opened, nor gone around by a second one. An address that was handed on to somebody else
    at the provider does not open the account of who had it before."""
    if not all(person.is_active for person in known):
        return Refusal.CLOSED
    person = known[0]
    if len(known) > 1 or SocialAccount.objects.filter(provider=issuer, user=person).exists():
        return Refusal.AMBIGUOUS
    SocialAccount.objects.create(provider=issuer, uid=subject, user=person)
    audit.record(
        "person.linked", now=DATABASE_CLOCK.now(), actor=None, subject=person, after={"issuer": issuer, "sub": subject}
    )
    return person


def _make(claims: Claims, mail: str, issuer: str, subject: str) -> Person:
    person = Person(
        username=_free_name(mail or _unconfirmed_name(claims)),
        email=mail,
        first_name=_said(claims, "given_name"),
        last_name=_said(claims, "family_name"),
    )
    person.set_unusable_password()
    person.save()
    SocialAccount.objects.create(provider=issuer, uid=subject, user=person)
    after = {"username": person.username, "email": mail, "issuer": issuer, "sub": subject}
    audit.record("person.added", now=DATABASE_CLOCK.now(), actor=None, subject=person, after=after)
    return person


def _unconfirmed_name(claims: Claims) -> str:
    """Marked as such: people choose it themselves, and might choose somebody else's."""
    chosen = re.sub(r"[^\w.-]+", "", _said(claims, "preferred_username"), flags=re.ASCII)
    return f"sso-{chosen or 'person'}"


def _free_name(wanted: str) -> str:
    if not Person.objects.filter(username__iexact=wanted).exists():
        return wanted
    ending = f"-{secrets.token_hex(4)}"
    return wanted[: LONGEST_NAME - len(ending)] + ending


def _said(claims: Claims, name: str) -> str:
    """A name as the provider has it, in one line and as long as ours may be. PostgreSQL takes no NUL."""
    said = claims.get(name)
    return " ".join(said.replace("\0", "").split())[:100] if isinstance(said, str) else ""

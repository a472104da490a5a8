"""Single sign-on, driven at a provider that really signs: who gets in, as whom, and what never does."""

import time
from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import pytest
from django.urls import reverse

from queue_core import roles
from queue_core.models import AuditEntry, LaneRole
from reviewboard.models import Person
from tests.sso.provider import SECRET

pytestmark = pytest.mark.django_db


def go_there(client, next_url=None):
    """To where the site sends the browser."""
    sent = client.get(reverse("sso_begin"), {"next": next_url} if next_url else {})
    assert sent.status_code == 302, sent.content.decode()
    return sent.url


def sign_on(client, provider, next_url=None):
    return client.get(provider.authorize(go_there(client, next_url)))


def signed_in(client):
    found = client.session.get("_auth_user_id")
    return Person.objects.get(pk=found) if found else None


def refused(client, answer, sentence):
    assert (answer.status_code, signed_in(client)) == (403, None)
    assert sentence in answer.content.decode()
    return True


UNCLEAR, STALE = "Single sign-on did not work this time.", "That sign-in was begun elsewhere"


def test_a_new_person_gets_an_account_without_any_right_and_finds_it_again(client, site, provider):
    provider.person |= {"given_name": "Vera", "family_name": "Ong\0", "groups": ["administrator"], "is_superuser": True}

    answer = sign_on(client, provider, "/jobs/?state=DEAD")

    vera = signed_in(client)
    assert (answer.status_code, answer.url) == (302, "/jobs/?state=DEAD")
    assert (vera.username, vera.email, vera.get_full_name()) == ("vera@corp.example", "vera@corp.example", "Vera Ong")
    assert (vera.is_staff, vera.is_superuser, vera.has_usable_password()) == (False, False, False)
    assert (vera.get_all_permissions(), vera.groups.count(), LaneRole.objects.count()) == (set(), 0, 0)
    client.logout()
    provider.person["email"] = "vera.married@corp.example"
    sign_on(client, provider)
    assert signed_in(client) == vera
    assert list(AuditEntry.objects.order_by("pk").values_list("act", "actor_name", "subject")) == [
        ("person.added", "system", "vera@corp.example"),
        ("person.signed_in", "vera@corp.example", "vera@corp.example"),
        ("person.signed_in", "vera@corp.example", "vera@corp.example"),
    ]
    assert AuditEntry.objects.last().after == {"by": "single sign-on"}


def test_nothing_of_the_provider_but_whose_account_it_is_is_kept(client, site, provider):
    from allauth.account.models import EmailAddress
    from allauth.socialaccount.models import SocialAccount, SocialApp, SocialToken
    from django.contrib import admin

    sign_on(client, provider)

    [kept] = SocialAccount.objects.values("provider", "uid", "extra_data")
    assert kept == {"provider": provider.issuer, "uid": "248289761001", "extra_data": {}}
    assert not any(model.objects.exists() for model in (SocialApp, SocialToken, EmailAddress))
    assert not any(admin.site.is_registered(model) for model in (SocialAccount, SocialApp, SocialToken, EmailAddress))
    assert SECRET not in repr(site)


def test_the_button_is_on_the_sign_in_page_and_takes_the_next_page_along(client, site):
    page = client.get(reverse("sign_in"), {"next": "/jobs/?a=1&b=2"}).content.decode()

    assert "Sign in with Corp" in page
    assert f"{reverse('sso_begin')}?next=%2Fjobs%2F%3Fa%3D1%26b%3D2" in page


@pytest.mark.parametrize(
    "next_url", ["https://evil.example/", "//evil.example", "javascript:alert(1)", "/\\evil.example"]
)
def test_it_leads_to_no_other_site(client, site, provider, next_url):
    assert sign_on(client, provider, next_url).url == "/"
    assert signed_in(client)


def test_an_answer_that_this_browser_did_not_ask_for_is_refused(client, site, provider):
    from django.test import Client

    stranger = Client()
    of_a_stranger = provider.authorize(go_there(stranger))
    go_there(client)

    assert refused(client, client.get(of_a_stranger), STALE)
    assert refused(client, client.get(reverse("sso_arrive"), {"code": "x"}), STALE)
    assert stranger.get(of_a_stranger).status_code == 302
    stranger.logout()
    assert refused(stranger, stranger.get(of_a_stranger), STALE)


def test_a_person_who_says_no_there_is_told_and_may_try_again(client, site, provider):
    state = parse_qs(urlsplit(go_there(client)).query)["state"][0]

    answer = client.get(reverse("sso_arrive"), {"error": "access_denied", "state": state})

    assert refused(client, answer, UNCLEAR)
    assert sign_on(client, provider).status_code == 302


NOW = int(time.time())
WRONG = {
    "another nonce": {"nonce": "of-another-sign-in"},
    "no nonce": {"nonce": None},
    "over": {"iat": NOW - 900, "exp": NOW - 600},
    "without an end": {"exp": None},
    "of another issuer": {"iss": "https://elsewhere.example"},
    "for another client": {"aud": "somebody-else"},
    "given to another client": {"aud": ["reviewboard", "other"], "azp": "other"},
    "of nobody": {"sub": None},
    "of an empty subject": {"sub": ""},
    "of too long a subject": {"sub": "s" * 192},
}


@pytest.mark.parametrize("token", WRONG.values(), ids=WRONG)
def test_a_token_is_believed_only_when_it_is_whole(client, site, provider, token):
    provider.token = token

    assert refused(client, sign_on(client, provider), UNCLEAR)
    assert not Person.objects.exists()


@pytest.mark.parametrize(("algorithm", "signed_with"), [("RS256", "another"), ("HS256", ""), ("none", "")])
def test_a_token_is_believed_only_when_the_providers_key_signed_it(
    client, site, provider, algorithm, signed_with, capsys
):
    provider.algorithm, provider.signed_with = algorithm, signed_with

    assert refused(client, sign_on(client, provider), UNCLEAR)
    assert SECRET not in "".join(capsys.readouterr())


def test_a_provider_that_is_away_or_speaks_for_another_is_a_sentence(client, site, provider, settings):
    provider.document = {"issuer": "https://elsewhere.example"}
    assert refused(client, client.get(reverse("sso_begin")), UNCLEAR)
    provider.document = {}
    there = provider.authorize(go_there(client))
    provider.document = {"token_endpoint": "http://127.0.0.1:9/token"}

    assert refused(client, client.get(there), UNCLEAR)


def test_a_verified_address_opens_the_account_that_has_it_with_its_roles(client, site, provider):
    roles.restore()
    olga = Person.objects.create_user("olga", email="Vera@Corp.example")
    roles.assign(olga, roles.REVIEWER)

    sign_on(client, provider)

    assert signed_in(client) == olga
    assert list(AuditEntry.objects.order_by("pk").values_list("act", "subject")) == [
        ("person.linked", "olga"),
        ("person.signed_in", "olga"),
    ]
    provider.person["sub"] = "who-got-the-address-later"
    client.logout()
    assert refused(client, sign_on(client, provider), "It is not clear which account here is yours.")


@pytest.mark.parametrize("verified", [False, None, "false", 1])
def test_an_unverified_address_opens_no_account_and_is_not_kept(client, site, provider, verified):
    ada = Person.objects.create_superuser("ada", email="vera@corp.example")
    provider.person |= {"email_verified": verified, "preferred_username": "ada"}

    sign_on(client, provider)

    found = signed_in(client)
    assert found != ada
    assert (found.username, found.email, found.is_superuser) == ("sso-ada", "", False)


def test_an_address_that_two_accounts_have_opens_neither(client, site, provider):
    for name in ("olga", "omar"):
        Person.objects.create_user(name, email="vera@corp.example")

    assert refused(client, sign_on(client, provider), "It is not clear which account here is yours.")


def test_a_closed_account_stays_closed_linked_or_not(client, site, provider):
    sign_on(client, provider)
    vera = signed_in(client)
    Person.objects.update(is_active=False)
    assert client.get(reverse("preferences")).status_code == 302
    client.logout()

    assert refused(client, sign_on(client, provider), "This account is closed.")
    provider.person["sub"] = "another"
    assert refused(client, sign_on(client, provider), "This account is closed.")
    assert list(Person.objects.all()) == [vera]


@pytest.mark.parametrize(
    ("mail", "verified", "gets_in"),
    [("a@corp.example", True, True), ("a@CORP.example", True, True), ("a@corp.example", False, False),
     ("a@evilcorp.example", True, False), ("a@corp.example.evil.example", True, False), (None, True, False)],
)  # fmt: skip
def test_with_a_list_of_domains_only_their_people_get_an_account(
    client, site, provider, settings, mail, verified, gets_in
):
    settings.SIGN_ON = replace(site, domains=frozenset({"corp.example"}))
    provider.person |= {"email": mail, "email_verified": verified}
    provider.userinfo = {"sub": provider.person["sub"]}

    answer = sign_on(client, provider)

    assert Person.objects.exists() is gets_in
    assert gets_in or refused(client, answer, "your mail address gives you none")


def test_what_the_token_leaves_out_is_asked_for_and_must_be_of_the_same_person(client, site, provider):
    del provider.person["email"], provider.person["email_verified"]
    provider.userinfo = {"sub": "somebody-else", "email": "boss@corp.example", "email_verified": True}
    assert refused(client, sign_on(client, provider), UNCLEAR)

    provider.userinfo["sub"] = provider.person["sub"]
    sign_on(client, provider)

    assert signed_in(client).email == "boss@corp.example"


def test_a_name_locked_out_by_a_guesser_stays_locked_for_passwords(client, site, provider, settings):
    settings.AXES_FAILURE_LIMIT = 2
    olga = Person.objects.create_user("olga", password="sunflower-4711", email="vera@corp.example")
    tries = [
        client.post(reverse("sign_in"), {"username": "olga", "password": password}, REMOTE_ADDR="203.0.113.9")
        for password in ("wrong", "wrong", "sunflower-4711")
    ]
    assert tries[-1].status_code == 429
    assert "Sign in with Corp" in tries[-1].content.decode()

    sign_on(client, provider)

    assert signed_in(client) == olga

"""A session: how it begins, where it leads, and that it ends everywhere when its person may not be there any more."""

import pytest
from django.conf import settings
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import reverse

from queue_core import roles
from reviewboard.models import Person
from tests.admin.forms import form_of

pytestmark = pytest.mark.django_db
WORD = "sunflower-4711"
ELSEWHERE = [
    "https://evil.example/", "//evil.example", "/\\evil.example", "///evil.example", "\\\\evil.example", "http:evil",
    "javascript:alert(1)", "data:text/html,x", "https:///evil.example", "//evil.example\\@testserver",
    "\x08//evil.example",
]  # fmt: skip


@pytest.fixture
def olga(db) -> Person:
    roles.restore()
    person = Person.objects.create_user("olga", password=WORD)
    roles.assign(person, roles.LEAD)
    return person


@pytest.fixture
def admin(db) -> Client:
    roles.restore()
    ada = Person.objects.create_user("ada", is_staff=True)
    roles.assign(ada, roles.ADMINISTRATOR)
    client = Client()
    client.force_login(ada)
    return client


def signed_in(person: Person) -> Client:
    client = Client()
    answer = client.post(reverse("sign_in"), {"username": person.username, "password": WORD})
    assert answer.status_code == 302
    return client


def change_of(person: Person) -> str:
    return reverse("admin:reviewboard_person_change", args=[person.pk])


def test_neither_signing_in_nor_a_choice_of_language_leads_to_another_site(olga: Person) -> None:
    sent = {"username": "olga", "password": WORD, "language": "en"}
    for next_url in [*ELSEWHERE, "board", "no-such-view", "a:b", "1"]:
        assert Client().post(reverse("set_language"), sent | {"next": next_url}).url == "/", next_url
    for next_url in ELSEWHERE[:3]:
        assert Client().post(reverse("sign_in"), sent | {"next": next_url}).url == "/", next_url
    assert Client().post(reverse("sign_in"), sent | {"next": "/jobs/?state=DEAD"}).url == "/jobs/?state=DEAD"


def test_a_session_that_was_planted_is_not_the_one_that_is_signed_in(olga: Person) -> None:
    planted = Client()
    planted.get(reverse("sign_in"))
    session = planted.session
    session["planted"] = True
    session.save()
    before = session.session_key
    browser = Client()
    browser.cookies[settings.SESSION_COOKIE_NAME] = before

    browser.post(reverse("sign_in"), {"username": "olga", "password": WORD})

    assert browser.session.session_key != before
    planted.cookies[settings.SESSION_COOKIE_NAME] = before
    assert planted.get(reverse("board")).status_code == 302


def test_the_cookies_are_out_of_reach_of_scripts_and_of_other_sites(olga: Person) -> None:
    """And of plain HTTP, but on the machine itself, where there is no other."""
    session = signed_in(olga).cookies[settings.SESSION_COOKIE_NAME]

    assert (session["httponly"], session["samesite"], session["path"]) == (True, "Lax", "/")
    assert 0 < session["max-age"] <= 24 * 3600
    assert settings.SESSION_COOKIE_SECURE == settings.CSRF_COOKIE_SECURE == (not settings.ENVIRONMENT.is_local)
    assert settings.CSRF_COOKIE_SAMESITE == "Lax"


def test_an_account_that_is_closed_is_signed_out_at_its_next_request_everywhere(olga: Person, admin: Client) -> None:
    page, phone = signed_in(olga), signed_in(olga)
    closed = form_of(admin, change_of(olga)) | {"is_active": ""}
    other = Person.objects.create_user("lea")
    roles.assign(other, roles.LEAD)
    assert admin.post(change_of(olga), closed).status_code == 302

    for client in (page, phone):
        assert client.get(reverse("board")).status_code == 302
        assert client.get(reverse("board"), headers={"HX-Request": "true"}).status_code == 401
    assert Client().post(reverse("sign_in"), {"username": "olga", "password": WORD}).status_code == 200


def test_another_password_ends_every_session_but_the_one_that_set_it(olga: Person, admin: Client) -> None:
    page, phone = signed_in(olga), signed_in(olga)
    word = {"usable_password": "true", "password1": "another long password", "password2": "another long password"}

    assert admin.post(reverse("admin:auth_user_password_change", args=[olga.pk]), word).status_code == 302

    assert [client.get(reverse("board")).status_code for client in (page, phone, admin)] == [302, 302, 200]


def test_a_role_that_is_taken_is_gone_at_once_in_every_session(olga: Person, admin: Client) -> None:
    page, phone = signed_in(olga), signed_in(olga)
    assert page.get(reverse("audit")).status_code == 200
    viewer = Group.objects.get(name=roles.VIEWER)

    assert admin.post(change_of(olga), form_of(admin, change_of(olga)) | {"groups": [viewer.pk]}).status_code == 302

    assert [client.get(reverse("audit")).status_code for client in (page, phone)] == [404, 404]
    assert page.get(reverse("board")).status_code == 200


def test_signing_out_ends_the_session_itself_and_is_no_link(olga: Person) -> None:
    client = signed_in(olga)
    key = client.session.session_key
    assert client.get(reverse("sign_out")).status_code == 405

    client.post(reverse("sign_out"))

    again = Client()
    again.cookies[settings.SESSION_COOKIE_NAME] = key
    assert again.get(reverse("board")).status_code == 302

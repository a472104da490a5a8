"""The demo's sign-in links."""

import time
from typing import Any

import pytest
from django.contrib.auth import SESSION_KEY
from django.test import Client
from sesame.tokens import create_token

from reviewboard.models import Person
from reviewboard.views.demo_signin import make_token
from tests.services import demo_urls

# Imported above and not by its name only: the site's own addresses are then loaded before a test sets demo mode.
pytestmark = [pytest.mark.django_db, pytest.mark.urls(demo_urls.__name__)]


@pytest.fixture(autouse=True)
def demo(settings: Any) -> None:
    settings.REVIEWBOARD_DEMO = True


@pytest.fixture
def olga() -> Person:
    return Person.objects.create_user("olga", first_name="Olga", last_name="Brandt")


def address(token: str) -> str:
    return f"/demo/sign-in/{token}/"


def is_signed_in(client: Client) -> bool:
    return SESSION_KEY in client.session


def test_opening_a_link_shows_a_button_and_signs_nobody_in(client, olga) -> None:
    """A program that looks ahead at links does not use one up."""
    link = address(make_token(olga))

    answers = [client.get(link), client.head(link), client.get(link)]

    assert [answer.status_code for answer in answers] == [200, 200, 200]
    assert "Olga Brandt" in answers[2].content.decode()
    assert "no-store" in answers[0]["Cache-Control"]
    assert not is_signed_in(client)


def test_the_button_signs_in_and_leads_to_the_board(client, olga) -> None:
    answer = client.post(address(make_token(olga)))

    assert (answer.status_code, answer["Location"]) == (302, "/")
    assert client.session[SESSION_KEY] == str(olga.pk)


def test_a_link_opens_once(client, olga) -> None:
    link = address(make_token(olga))
    client.post(link)
    stranger = Client()

    answer = stranger.post(link)

    assert answer.status_code == 410
    assert not is_signed_in(stranger)


def test_of_two_links_of_one_person_the_second_is_void_after_the_first(client, olga) -> None:
    links = [address(make_token(olga)) for _ in range(2)]
    client.post(links[0])

    assert Client().post(links[1]).status_code == 410


def test_a_link_that_was_altered_or_made_for_another_purpose_opens_nothing(client, olga) -> None:
    for token in (make_token(olga)[:-2] + "xx", create_token(olga), "nonsense"):
        assert client.post(address(token)).status_code == 410
    assert not is_signed_in(client)


def test_a_link_of_somebody_who_may_no_longer_sign_in_opens_nothing(client, olga) -> None:
    link = address(make_token(olga))
    Person.objects.filter(pk=olga.pk).update(is_active=False)

    assert client.post(link).status_code == 410
    assert not is_signed_in(client)


def test_a_link_is_too_old_after_half_a_day(client, olga, monkeypatch, settings) -> None:
    long_ago = time.time() - settings.SESAME_MAX_AGE - 60
    with monkeypatch.context() as then:
        then.setattr("sesame.tokens_v2.time.time", lambda: long_ago)
        link = address(make_token(olga))

    assert client.post(link).status_code == 410


@pytest.mark.parametrize(
    "request_from",
    [
        {"REMOTE_ADDR": "192.0.2.7"},
        {"REMOTE_ADDR": ""},
        {"HTTP_X_FORWARDED_FOR": "192.0.2.7"},
        {"HTTP_FORWARDED": "for=192.0.2.7"},
    ],
    ids=["another machine", "nobody knows", "through a proxy", "through a newer proxy"],
)
def test_from_elsewhere_there_is_no_such_page(client, olga, request_from) -> None:
    link = address(make_token(olga))

    assert client.get(link, **request_from).status_code == 404
    assert client.post(link, **request_from).status_code == 404
    assert not is_signed_in(client)


def test_outside_the_demo_there_is_no_such_page(client, olga, settings) -> None:
    settings.REVIEWBOARD_DEMO = False

    assert client.post(address(make_token(olga))).status_code == 404


@pytest.mark.urls("reviewboard.urls")
def test_outside_the_demo_there_is_not_even_an_address(client, olga) -> None:
    assert client.get(address(make_token(olga))).status_code == 404

import pytest
from django.test import Client, RequestFactory

from reviewboard.typed import typed_fields, whole_fields
from reviewboard.views.errors import server_error

NOTE = "It reads like a threat,\nbut it is a song. <b>"


@pytest.fixture
def strict_client(gallery, olga):
    """A browser that must send its token, as real ones must."""
    client = Client(enforce_csrf_checks=True)
    client.force_login(olga)
    return client


def test_a_lost_token_gives_the_form_back_with_its_text(strict_client):
    answer = strict_client.post(
        "/preferences/?a=1", {"note": NOTE, "item": "7"}, headers={"Origin": "http://testserver"}
    )

    page = answer.content.decode()
    assert answer.status_code == 403
    assert 'action="/preferences/?a=1"' in page
    assert "but it is a song. &lt;b&gt;</textarea>" in page
    assert 'name="csrfmiddlewaretoken"' in page


@pytest.mark.parametrize("origin", ["https://elsewhere.example", "null", ""])
def test_a_form_from_elsewhere_is_never_offered_for_sending(strict_client, origin):
    answer = strict_client.post("/preferences/", {"note": NOTE}, headers={"Origin": origin})

    page = answer.content.decode()
    assert answer.status_code == 403
    assert 'action="/preferences/"' not in page


def test_what_was_typed_stands_on_the_page_of_an_address_that_is_gone(signed_in):
    answer = signed_in.post("/gone/", {"note": NOTE, "item": "7"})

    assert answer.status_code == 404
    assert "but it is a song. &lt;b&gt;" in answer.content.decode()


def test_secrets_are_never_written_back():
    request = RequestFactory().post(
        "/", {"password": "a b", "csrfmiddlewaretoken": "x y", "api_key": "s t", "note": "u"}
    )

    assert typed_fields(request) == [("note", "u")]


def test_what_names_a_variable_of_the_environment_is_no_secret_and_is_sent_once_more():
    """Without it the form of a connection or a webhook, sent again after a sign-in, would clear it."""
    request = RequestFactory().post("/", {"key_env": "SHOP_KEY", "secret_env": "HOOK", "password": "x"})

    assert whole_fields(request) == [("key_env", "SHOP_KEY"), ("secret_env", "HOOK")]


def test_a_field_too_large_is_left_out():
    request = RequestFactory().post("/", {"note": "x" * 20_001, "reason": "short"})

    assert typed_fields(request) == [("reason", "short")]


def test_a_body_that_cannot_be_read_breaks_no_error_page():
    request = RequestFactory().generic("POST", "/", b"--broken", content_type="multipart/form-data; boundary=")

    assert typed_fields(request) == []


def test_a_crash_has_a_page_without_a_database(gallery):
    """No query is allowed here: what broke may be the database."""
    answer = server_error(RequestFactory().post("/", {"note": NOTE}))

    page = answer.content.decode()
    assert answer.status_code == 500
    assert "but it is a song. &lt;b&gt;" in page
    assert "board.css" in page

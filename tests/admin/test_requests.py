"""What a browser or a stranger sends to any page, the admin's among them."""

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse

pytestmark = pytest.mark.django_db

FORMS = ["application/x-www-form-urlencoded", "multipart/form-data; boundary=b"]


@pytest.mark.parametrize("content_type", FORMS)
@pytest.mark.parametrize("charset", ["utf-16", "utf-7", "latin-1", "UTF-32"])
@pytest.mark.parametrize("path", ["/sign-in/", "/language/", "/desk/1/decide/", "/admin/login/", "/nowhere/"])
def test_a_form_in_another_charset_is_refused_whatever_its_address(path: str, charset: str, content_type: str) -> None:
    client = Client(enforce_csrf_checks=True, raise_request_exception=False)

    answer = client.generic("POST", path, "a=ä".encode("utf-16"), content_type=f"{content_type}; charset={charset}")

    assert (answer.status_code, answer["Content-Type"]) == (400, "text/plain; charset=utf-8")


@pytest.mark.parametrize("charset", ["utf-8", "UTF-8", "no-such-charset", ""])
def test_a_form_in_utf8_or_an_unknown_charset_is_read_as_utf8(charset: str) -> None:
    named = f"; charset={charset}" if charset else ""

    answer = Client().generic(
        "POST", reverse("set_language"), "language=en", content_type=f"application/x-www-form-urlencoded{named}"
    )

    assert answer.status_code == 302


def test_the_admin_names_the_sites_own_icon(admin_client: Client) -> None:
    page = admin_client.get(reverse("admin:index")).content.decode()

    assert 'rel="icon"' in page
    assert "icons/favicon.svg" in page


def test_a_browser_that_asks_for_an_icon_by_itself_is_led_to_it() -> None:
    answer = Client().get("/favicon.ico")

    assert answer.status_code == 301
    assert answer["Location"].endswith("favicon.svg")


def test_every_address_answers_a_stranger_without_an_error() -> None:
    client = Client(raise_request_exception=False)

    answers = {path: client.get(path).status_code for path in _addresses(get_resolver().url_patterns)}

    assert not {path: status for path, status in answers.items() if status >= 500}


def _addresses(patterns: list[URLPattern | URLResolver], prefix: str = "/") -> list[str]:
    found = []
    for one in patterns:
        if isinstance(one, URLResolver) and not isinstance(one.pattern, str) and hasattr(one.pattern, "_route"):
            found += _addresses(one.url_patterns, prefix + one.pattern._route)
        elif hasattr(one.pattern, "_route") and "<" not in one.pattern._route:
            found.append(prefix + one.pattern._route)
    return found

"""Single sign-on is off, whole, or refused; and it is an extra."""

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.urls import NoReverseMatch, reverse
from environ import Env

from reviewboard.sso import setup

WHOLE = {"OIDC_ISSUER": "https://id.example/realm", "OIDC_CLIENT_ID": "board", "OIDC_CLIENT_SECRET": "hunter2-hunter2"}


@pytest.fixture(autouse=True)
def installed(monkeypatch):
    monkeypatch.setattr(setup, "has_packages", lambda: True)


def read(**named):
    env = Env()
    env.ENVIRON = named
    return setup.read(env)


def test_nothing_named_is_off_and_then_there_is_no_button_and_no_address(client, db):
    assert read() is None
    assert "Sign in with" not in client.get(reverse("sign_in")).content.decode()
    with pytest.raises(NoReverseMatch):
        reverse("sso_begin")


def test_a_whole_set_up_hides_its_secret_and_reads_its_domains(db):
    found = read(**WHOLE, OIDC_DOMAINS="Corp.example, @corp.test,")

    assert found.domains == {"corp.example", "corp.test"}
    assert "hunter2" not in repr(found)


@pytest.mark.parametrize("left_out", WHOLE)
def test_half_of_it_is_refused_and_says_what_is_missing(left_out):
    with pytest.raises(ImproperlyConfigured, match=f"^{left_out} must be set") as refused:
        read(**{name: value for name, value in WHOLE.items() if name != left_out})

    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    "issuer",
    ["http://id.example", "id.example", "https://id.example?x=1", "https://id.example#x", "https://u:p@id.example",
     "https://", "https://id.example" + setup.DOCUMENT, "https://id.example/" + "r" * 200],
)  # fmt: skip
def test_an_issuer_that_cannot_be_trusted_or_found_is_refused(issuer):
    with pytest.raises(ImproperlyConfigured, match="OIDC_ISSUER"):
        read(**WHOLE | {"OIDC_ISSUER": issuer})


def test_without_the_extra_it_is_refused_with_what_to_run(monkeypatch):
    monkeypatch.setattr(setup, "has_packages", lambda: False)

    with pytest.raises(ImproperlyConfigured, match="uv sync --extra sso"):
        read(**WHOLE)

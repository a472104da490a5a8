"""Guessing a password ends after a few tries; the person can still sign in from elsewhere."""

from datetime import timedelta

import pytest
from axes.models import AccessAttempt
from django.urls import reverse
from django.utils import timezone

from queue_core import roles
from queue_core.models import AuditEntry
from reviewboard.models import Person

pytestmark = pytest.mark.django_db
RIGHT, WRONG = "sunflower-4711", "sunflower-4712"
LIMIT = 8


@pytest.fixture
def olga(db):
    roles.restore()
    return Person.objects.create_user("olga", password=RIGHT)


def sign_in(client, password, *, name="olga", address="203.0.113.9", page="sign_in"):
    data = {"username": name, "password": password}
    return client.post(reverse(page), data, REMOTE_ADDR=address)


def fail(client, times, **where):
    return [sign_in(client, WRONG, **where).status_code for _try in range(times)]


@pytest.mark.parametrize("page", ["sign_in", "admin:login"])
def test_after_the_limit_the_right_password_does_not_help_either(client, olga, page):
    assert fail(client, LIMIT, page=page) == [200] * (LIMIT - 1) + [429]

    locked = sign_in(client, RIGHT, page=page)

    assert (locked.status_code, locked["Retry-After"]) == (429, "900")
    assert "Too many failed tries under this name from here." in locked.content.decode()
    assert "Try again in 15 minutes" in locked.content.decode()
    assert WRONG not in locked.content.decode()


def test_a_name_that_nobody_has_is_answered_in_the_same_words(client, olga):
    fail(client, LIMIT)
    fail(client, LIMIT, name="nobody")

    known, unknown = sign_in(client, WRONG), sign_in(client, WRONG, name="nobody")

    assert unknown.status_code == 429
    assert unknown.content.decode().count("Too many failed tries") == known.content.decode().count(
        "Too many failed tries"
    )
    assert not AuditEntry.objects.exclude(subject="olga").exists()


def test_who_guesses_from_elsewhere_does_not_lock_the_person_out(client, olga):
    fail(client, LIMIT, address="198.51.100.1")

    assert sign_in(client, RIGHT).status_code == 302


def test_another_browser_at_the_same_address_is_no_new_start(client, olga):
    for number in range(LIMIT):
        client.post(
            reverse("sign_in"), {"username": "olga", "password": WRONG}, REMOTE_ADDR="203.0.113.9",
            headers={"User-Agent": f"browser {number}"},
        )  # fmt: skip

    assert sign_in(client, RIGHT).status_code == 429


def test_it_is_over_after_a_quarter_of_an_hour_and_tries_meanwhile_do_not_prolong_it(client, olga):
    fail(client, LIMIT + 3)
    AccessAttempt.objects.update(attempt_time=timezone.now() - timedelta(minutes=16))

    assert sign_in(client, RIGHT).status_code == 302


def test_signing_in_forgets_the_failures_before(client, olga):
    fail(client, LIMIT - 1)
    assert sign_in(client, RIGHT).status_code == 302
    client.logout()

    assert fail(client, LIMIT - 1) == [200] * (LIMIT - 1)


def test_no_password_is_kept(client, olga):
    fail(client, LIMIT)

    kept = str(list(AccessAttempt.objects.values()))
    assert "olga" in kept
    assert WRONG not in kept


def test_it_is_on_record_once_and_an_administrator_ends_it(client, olga):
    fail(client, LIMIT + 2)
    ada = Person.objects.create_user("ada", is_staff=True)
    roles.assign(ada, roles.ADMINISTRATOR)
    client.force_login(ada)

    answer = client.post(
        reverse("admin:reviewboard_person_changelist"),
        {"action": "let_in", "_selected_action": [olga.pk, ada.pk]},
        follow=True,
    )

    assert "1 person may try again." in answer.content.decode()
    client.logout()
    assert sign_in(client, RIGHT).status_code == 302
    assert list(AuditEntry.objects.order_by("pk").values_list("act", "actor__username", "subject")) == [
        ("person.locked_out", None, "olga"),
        ("person.let_in", "ada", "olga"),
        ("person.signed_in", "olga", "olga"),
    ]


def test_one_name_is_one_however_it_is_written_and_one_household_is_one_place(client, olga):
    """A form takes the wide letters for the usual ones; who has one address of an IPv6 network has all of it."""
    written = ["olga", "ｏｌｇａ", "ｏlga", " olga"]
    for number in range(LIMIT):
        sign_in(client, WRONG, name=written[number % 4], address=f"2001:db8:1:2:{number + 1:x}::9")

    assert sign_in(client, RIGHT, address="2001:db8:1:2:ffff::1").status_code == 429
    assert sign_in(client, RIGHT, name="ｏｌｇａ", address="2001:db8:1:2::7").status_code == 429
    assert sign_in(client, RIGHT, name="OLGA", address="2001:db8:1:2::7").status_code == 200
    assert sign_in(client, RIGHT, address="2001:db8:1:3::1").status_code == 302
    assert {attempt.ip_address for attempt in AccessAttempt.objects.filter(username="olga")} == {"2001:db8:1:2::"}

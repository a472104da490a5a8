import pytest
from django.test import Client

from queue_core.models import AuditEntry
from reviewboard.models import Person


def test_signing_in_leads_to_where_one_wanted_to_go(client, gallery, olga):
    answer = client.post("/sign-in/?next=/desk/", {"username": "olga", "password": "sunflower-4711", "next": "/desk/"})

    assert answer.status_code == 302
    assert answer["Location"] == "/desk/"


def test_signing_in_leads_to_no_other_site(client, gallery, olga):
    sent = {"username": "olga", "password": "sunflower-4711", "next": "https://elsewhere.example/"}

    assert "elsewhere" not in client.post("/sign-in/", sent)["Location"]


def test_a_wrong_password_is_said_and_not_shown_again(client, gallery, olga):
    page = client.post("/sign-in/", {"username": "olga", "password": "wrong-one"}).content.decode()

    assert "form-errors" in page
    assert "wrong-one" not in page


def test_a_link_never_signs_anybody_out(signed_in):
    assert signed_in.get("/sign-out/").status_code == 405
    assert signed_in.get("/preferences/").status_code == 200


def test_signing_out_clears_what_the_tab_had_kept(signed_in):
    page = signed_in.post("/sign-out/").content.decode()

    assert "data-kept-clear-all" in page
    assert signed_in.get("/preferences/").status_code == 302


def test_preferences_are_kept_on_the_person(signed_in, olga):
    sent = {"language": "zh-hans", "timezone": "Asia/Shanghai", "shortcuts": "alt"}

    assert signed_in.post("/preferences/", sent).status_code == 302

    olga.refresh_from_db()
    assert (olga.language, olga.timezone, olga.shortcuts) == ("zh-hans", "Asia/Shanghai", "alt")


def test_preferences_write_no_other_field(signed_in, olga):
    signed_in.post("/preferences/", {"language": "", "timezone": "UTC", "shortcuts": "off", "is_superuser": "on"})

    olga.refresh_from_db()
    assert not olga.is_superuser


@pytest.mark.parametrize("field", ["timezone", "shortcuts", "language"])
def test_a_choice_that_was_not_offered_is_refused_with_its_field(signed_in, olga, field):
    sent = {"language": "", "timezone": "UTC", "shortcuts": "off", field: "Mars/Olympus"}

    answer = signed_in.post("/preferences/", sent)

    assert answer.status_code == 422
    assert f"#id_{field}" in answer.content.decode()
    olga.refresh_from_db()
    assert olga.timezone == "Europe/Stockholm"


def test_times_are_shown_in_the_persons_zone(signed_in):
    assert "2026-03-14 05:52:07, Europe/Stockholm (UTC+01:00)" in signed_in.get("/").content.decode()


def test_a_zone_that_this_machine_does_not_know_is_read_as_utc(signed_in, olga):
    Person.objects.filter(pk=olga.pk).update(timezone="Europe/Atlantis")

    assert "2026-03-14 04:52:07, UTC" in signed_in.get("/").content.decode()


def test_the_persons_language_wins_over_the_browsers(signed_in, olga):
    Person.objects.filter(pk=olga.pk).update(language="zh-hans")

    answer = signed_in.get("/", headers={"Accept-Language": "en"})

    assert answer["Content-Language"] == "zh-hans"
    assert 'lang="zh-hans"' in answer.content.decode()


def test_one_readers_language_does_not_stay_for_the_next(signed_in, olga):
    Person.objects.filter(pk=olga.pk).update(language="zh-hans")
    signed_in.get("/")

    assert 'lang="en"' in Client().get("/sign-in/").content.decode()


def test_language_is_chosen_before_signing_in_too(client, gallery, db):
    answer = client.post("/language/", {"language": "zh-hans", "next": "/sign-in/"})

    assert answer["Location"] == "/sign-in/"
    assert 'lang="zh-hans"' in client.get("/sign-in/").content.decode()


def test_choosing_a_language_leads_to_no_other_site(client, gallery, db):
    answer = client.post("/language/", {"language": "en", "next": "//elsewhere.example/"})

    assert answer["Location"] == "/"


def test_an_unknown_language_changes_nothing(signed_in, olga):
    signed_in.post("/language/", {"language": "xx", "next": "/"})

    olga.refresh_from_db()
    assert olga.language == ""


def test_a_person_sets_their_own_password_on_record_and_is_signed_out_elsewhere(signed_in, olga, gallery):
    elsewhere = Client()
    elsewhere.force_login(olga)
    assert 'href="/preferences/password/"' in signed_in.get("/preferences/").content.decode()
    new = {"new_password1": "dandelion-0815-x", "new_password2": "dandelion-0815-x"}

    wrong = signed_in.post("/preferences/password/", new | {"old_password": "not-hers"})
    assert wrong.status_code == 422
    assert "dandelion" not in wrong.content.decode()
    short = {"old_password": "sunflower-4711", "new_password1": "short", "new_password2": "short"}
    assert signed_in.post("/preferences/password/", short).status_code == 422
    assert signed_in.post("/preferences/password/", new | {"old_password": "sunflower-4711"}).status_code == 302

    olga.refresh_from_db()
    assert olga.check_password("dandelion-0815-x")
    assert AuditEntry.objects.filter(act="person.password_set", actor=olga).count() == 1
    assert signed_in.get("/preferences/").status_code == 200
    assert elsewhere.get("/preferences/").status_code == 302


def test_who_signs_in_elsewhere_has_no_password_to_change(signed_in, olga):
    olga.set_unusable_password()
    olga.save()
    signed_in.force_login(olga)

    assert "/preferences/password/" not in signed_in.get("/preferences/").content.decode()
    assert "<form" not in signed_in.get("/preferences/password/").content.decode().partition("<main")[2]
    assert signed_in.post("/preferences/password/", {"old_password": ""}).status_code == 404

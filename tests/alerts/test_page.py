"""Alerts on the board and on their own page, and who may say that they look after one."""

import pytest
from django.urls import reverse

from queue_core import alerts, roles
from queue_core.models import AlertEpisode, AuditEntry
from queue_core.states import AlertKind
from reviewboard.alert_text import sentence
from tests.factories import at, make_lane

pytestmark = pytest.mark.django_db

PARAMS = {
    "since": "2026-01-01T00:00:00+00:00", "target": 900.0, "count": 3, "by_severity": {"2": 1, "1": 2}, "growth": 4.5,
    "why": "nobody", "lanes": ["Posts"], "connection": "m", "reason": "auto_errors", "stage": 1, "name": "probe",
}  # fmt: skip


def an_alert(kind: str = "growing", **fields) -> AlertEpisode:
    values = {"kind": kind, "subject": f"x {AlertEpisode.objects.count()}", "params": PARAMS}
    return AlertEpisode.objects.create(**(values | {"begun_at": at(0), "seen_at": at(0)} | fields))


@pytest.mark.parametrize("kind", AlertKind.values)
def test_every_kind_is_a_sentence(kind):
    text = sentence(AlertEpisode(kind=kind, params=PARAMS))

    assert text.endswith(".")
    assert "%(" not in text


def test_the_most_severe_stand_first_also_after_the_database_sorted_them():
    episode = an_alert("passing", params={"count": 6, "by_severity": {"2": 1, "1": 2, "0": 3}})
    episode.refresh_from_db()

    assert "(severity 2: 1, severity 1: 2, severity 0: 3)" in sentence(episode)


def test_a_kind_of_a_later_version_is_shown_by_its_code():
    assert sentence(AlertEpisode(kind="gone_missing", params={})) == "gone_missing"


def test_the_board_lists_the_worst_and_counts_the_rest(client, reviewer):
    lane = make_lane(title="<i>Posts</i>")
    an_alert("growing", lane=lane)
    for _number in range(5):
        an_alert("scheduler_dead")
    client.force_login(reviewer)

    page = client.get("/").content.decode()

    assert page.count("alert-line tone-") == 5
    assert "1 more alert" in page
    assert "The scheduler is dead" in page
    assert "grows by 4.5" not in page
    assert "<i>Posts</i>" not in page


def test_somebody_takes_one_by_name_and_the_second_reads_who_was_faster(client, reviewer, lead):
    episode = an_alert()
    client.force_login(reviewer)
    assert "I look after it" in client.get(reverse("alerts")).content.decode()
    assert client.post(reverse("alert_acknowledge", args=[episode.pk])).status_code == 302
    client.force_login(lead)

    second = client.post(reverse("alert_acknowledge", args=[episode.pk]))

    assert second.status_code == 409
    assert "Somebody looks after it already." in second.content.decode()
    assert "rita" in second.content.decode()
    assert "I look after it" not in client.get(reverse("alerts")).content.decode()
    assert AuditEntry.objects.filter(act="alert.acknowledged").count() == 1


def test_who_may_only_look_gets_no_button_and_no_address(client, person):
    episode = an_alert()
    client.force_login(person(roles.VIEWER))

    page = client.get(reverse("alerts"))

    assert page.status_code == 200
    assert "<button" not in page.content.decode().split('id="content"')[1]
    assert client.post(reverse("alert_acknowledge", args=[episode.pk])).status_code == 404
    client.force_login(person(None))
    assert client.get(reverse("alerts")).status_code == 404


def test_one_that_is_none_does_not_exist(client, reviewer):
    client.force_login(reviewer)

    assert client.post(reverse("alert_acknowledge", args=[10**9])).status_code == 404


def test_without_mail_the_page_says_so(client, reviewer, settings):
    settings.QUEUE_CORE_ALERT_MAIL = ""
    client.force_login(reviewer)

    assert "EMAIL_URL" in client.get(reverse("alerts")).content.decode()
    assert not alerts.is_mail_set_up()


def test_an_administrator_sets_who_gets_what(client, person, lead):
    """ADM-01"""
    ada = person(roles.ADMINISTRATOR, is_staff=True)
    client.force_login(ada)
    lane = make_lane()
    made = client.post(
        "/admin/queue_core/alertsubscription/add/", {"person": lead.pk, "lane": lane.pk, "kinds": ["passing", "nobody"]}
    )
    hook = {"name": "chat", "address": "http://169.254.169.254/", "secret_env": "CHAT_SECRET", "kinds": ["growing"]}
    refused = client.post("/admin/queue_core/alerthook/add/", hook)
    taken = client.post("/admin/queue_core/alerthook/add/", hook | {"address": "https://203.0.113.7/in"})
    silent = client.post(
        "/admin/queue_core/alertsettings/add/", {"lane": lane.pk, "kinds": ["passing"], "least_passing": 5}
    )

    assert [made.status_code, refused.status_code, silent.status_code] == [302, 200, 302]
    row = lead.alert_subscriptions.get()
    assert row.kinds == ["nobody", "passing"], "in the order of the kinds"
    assert (lane.alert_settings.kinds, lane.alert_settings.least_passing) == (["passing"], 5)
    assert taken.status_code in (200, 302)
    assert AuditEntry.objects.filter(act__startswith="alert").count() >= 2

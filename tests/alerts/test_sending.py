"""Each notice leaves once, by one sender; a channel that is away is tried again, and not for ever."""

import http.server
import json
import threading
from datetime import timedelta
from uuid import uuid4

import pytest
from django.core import mail
from standardwebhooks import Webhook

from queue_core import alerts
from queue_core.alerts.sending import PAUSES, TAKEN_FOR
from queue_core.models import AlertEpisode, AlertHook, AlertNotice
from tests.factories import at, clock

pytestmark = pytest.mark.django_db

SECRET = "whsec_" + "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0"


@pytest.fixture
def episode(db):
    params = {"since": at(50).isoformat(), "target": 900.0}
    return AlertEpisode.objects.create(
        kind="ready_late", subject="lane 1", params=params, begun_at=at(100), seen_at=at(100)
    )


@pytest.fixture
def to_lead(episode, lead):
    return a_notice(episode, channel="mail", person=lead)


def a_notice(episode, **fields):
    return AlertNotice.objects.create(
        **({"episode": episode, "phase": "begun", "key": uuid4(), "due_at": at(100)} | fields)
    )


def test_a_mail_says_what_is_wrong_and_where_to_go_in_the_persons_language(to_lead, lead, settings):
    settings.PUBLIC_URL = "https://board.example.org"
    lead.language, lead.timezone = "zh-hans", "Asia/Shanghai"
    lead.save()

    assert alerts.send_due(clock=clock(101)) == alerts.Sent(sent=1)

    [message] = mail.outbox
    assert message.to == ["lena@example.org"]
    assert "https://board.example.org/alerts/" in message.body
    assert "08:00" in message.body
    assert str(to_lead.key) in message.extra_headers["Message-ID"]


def test_a_notice_is_sent_once_however_many_send(to_lead):
    alerts.send_due(clock=clock(101))
    alerts.send_due(clock=clock(102))

    to_lead.refresh_from_db()
    assert (len(mail.outbox), to_lead.tries, to_lead.sent_at) == (1, 1, at(101))


def test_what_a_sender_has_taken_no_other_sends_until_it_is_surely_dead(to_lead):
    AlertNotice.objects.update(due_at=at(101) + TAKEN_FOR, tries=1)

    assert alerts.send_due(clock=clock(101)) == alerts.Sent()
    assert alerts.send_due(clock=clock(101 + TAKEN_FOR.total_seconds())) == alerts.Sent(sent=1)


def test_a_mail_server_that_is_away_is_tried_again_and_given_up_in_the_end(to_lead, monkeypatch):
    def refuse(_notice):
        raise ConnectionRefusedError("mail.internal.example.org:25")

    monkeypatch.setattr("reviewboard.alert_mail.send", refuse)
    when, tries = 100.0, 0
    for pause in (*PAUSES, timedelta(0)):
        assert alerts.send_due(clock=clock(when)).failed == 1
        assert alerts.send_due(clock=clock(when + pause.total_seconds() - 0.1)) == alerts.Sent()
        when, tries = when + pause.total_seconds(), tries + 1

    to_lead.refresh_from_db()
    assert (to_lead.tries, to_lead.given_up_at, to_lead.sent_at) == (tries, at(when), None)
    assert to_lead.fault == "ConnectionRefusedError"
    assert alerts.send_due(clock=clock(when + 10_000)) == alerts.Sent()


def test_a_channel_that_fails_keeps_no_other_from_its_turn(to_lead, episode, person, monkeypatch):
    second = person("lead", email="other@example.org")
    a_notice(episode, channel="mail", person=second)
    tried = []
    monkeypatch.setattr("reviewboard.alert_mail.send", lambda notice: tried.append(notice.pk) or "refused")
    a_notice(episode, channel="hook", hook=a_hook("https://127.0.0.1/"))

    assert alerts.send_due(clock=clock(101)).failed == 2
    assert tried == [to_lead.pk]


def a_hook(address):
    return AlertHook.objects.create(name=f"hook-{uuid4().hex[:6]}", address=address, secret_env="TEST_ALERT_SECRET")


class Listener(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.heard.append((dict(self.headers), body))
        self.send_response(self.server.status)
        if self.server.status == 302:
            self.send_header("location", "/elsewhere")
        self.end_headers()

    def log_message(self, *_details):
        """Not on the tests' output."""


@pytest.fixture
def listener(settings, monkeypatch):
    monkeypatch.setenv("TEST_ALERT_SECRET", SECRET)
    settings.QUEUE_CORE_ALLOWED_NETWORKS = ("127.0.0.1/32",)
    server = http.server.HTTPServer(("127.0.0.1", 0), Listener)
    server.heard, server.status = [], 204
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def test_a_webhook_gets_a_signed_alert_that_holds_no_evidence(episode, listener):
    notice = a_notice(episode, channel="hook", hook=a_hook(f"http://127.0.0.1:{listener.server_port}/in"))

    assert alerts.send_due(clock=clock(101)) == alerts.Sent(sent=1)

    [(headers, body)] = listener.heard
    told = Webhook(SECRET).verify(body, {name.lower(): value for name, value in headers.items()})
    assert (told["type"], told["kind"], told["id"]) == ("alert.begun", "ready_late", str(notice.key))
    assert json.loads(body)["params"] == episode.params


def test_a_webhook_that_redirects_is_followed_nowhere_and_its_secret_is_in_no_fault(episode, listener):
    listener.status = 302
    notice = a_notice(episode, channel="hook", hook=a_hook(f"http://127.0.0.1:{listener.server_port}/in"))

    assert alerts.send_due(clock=clock(101)).failed == 1

    notice.refresh_from_db()
    assert len(listener.heard) == 1
    assert notice.fault == "redirect 302"
    assert SECRET not in repr(notice.__dict__)


def test_an_inner_address_that_nobody_allowed_is_never_connected_to(episode, listener, settings):
    settings.QUEUE_CORE_ALLOWED_NETWORKS = ()
    notice = a_notice(episode, channel="hook", hook=a_hook(f"https://127.0.0.1:{listener.server_port}/in"))

    assert alerts.send_due(clock=clock(101)).failed == 1

    notice.refresh_from_db()
    assert (listener.heard, notice.fault) == ([], "forbidden")


def test_a_webhook_without_its_secret_says_which_variable_is_empty(episode, listener, monkeypatch):
    monkeypatch.setenv("TEST_ALERT_SECRET", "")
    notice = a_notice(episode, channel="hook", hook=a_hook(f"http://127.0.0.1:{listener.server_port}/in"))

    alerts.send_due(clock=clock(101))

    notice.refresh_from_db()
    assert (listener.heard, "TEST_ALERT_SECRET" in notice.fault) == ([], True)

"""The page of deliveries, its acts, and the endpoints' admin: who may, what it says, what it refuses."""

import re
from datetime import timedelta
from html import unescape

import pytest
from django.urls import reverse
from standardwebhooks import Webhook

from queue_core import relay, roles
from queue_core.clock import DATABASE_CLOCK
from queue_core.models import AuditEntry, Delivery, Endpoint, EndpointSecret, Message
from tests.admin.forms import form_of
from tests.factories import done_job, make_lane
from tests.relay.conftest import deliver, secret_of
from tests.relay.receiver import answer, hang

pytestmark = pytest.mark.django_db


def text(response) -> str:
    return unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode())))


def counted(page) -> dict[str, object]:
    """What the form of a replay carries: what was counted, and when."""
    return {"up_to": page.context["up_to"], "as_of": page.context["as_of"].isoformat()}


@pytest.fixture
def shop(make_endpoint, receiver) -> Endpoint:
    return make_endpoint(receiver.url)


@pytest.fixture
def signed_in(client, leo):
    client.force_login(leo)
    return client


class TestWho:
    @pytest.mark.parametrize("role", [None, roles.VIEWER, roles.REVIEWER])
    def test_who_may_not_manage_deliveries_finds_no_such_page_and_no_link(self, client, person, shop, role) -> None:
        client.force_login(person("somebody", role))

        assert client.get(reverse("deliveries")).status_code == 404
        for name in ("endpoint_disable", "endpoint_enable", "endpoint_test", "endpoint_try_now", "endpoint_retire"):
            assert client.post(reverse(name, args=[shop.pk])).status_code == 404
        assert client.post(reverse("deliveries_replay"), {"up_to": 1}).status_code == 404
        if role:
            assert reverse("deliveries") not in client.get("/").content.decode()

    def test_a_lead_may_but_retires_nothing(self, signed_in, shop) -> None:
        assert reverse("deliveries") in signed_in.get("/").content.decode()
        assert signed_in.post(reverse("endpoint_retire", args=[shop.pk])).status_code == 404
        assert Endpoint.objects.get().state == "enabled"

    def test_an_act_is_no_link(self, signed_in, shop) -> None:
        assert signed_in.get(reverse("endpoint_disable", args=[shop.pk])).status_code == 405


class TestPage:
    def test_it_says_that_there_is_no_endpoint_and_who_adds_one(self, signed_in) -> None:
        assert "No endpoint yet An administrator adds one" in text(signed_in.get(reverse("deliveries")))

    def test_failing_endpoints_come_first_each_as_a_sentence(
        self, signed_in, make_endpoint, receiver, other, clock
    ) -> None:
        make_endpoint(other.url, "archive")
        failing = make_endpoint(receiver.url, "shop")
        receiver.then = answer(503)
        for _count in range(3):
            done_job(make_lane())
        for one in Endpoint.objects.all():
            deliver(one, clock)

        shown = text(signed_in.get(reverse("deliveries")))

        assert shown.index("shop failing") < shown.index("archive delivers")
        assert "It has failed since" in shown
        assert "It answered 503: it failed. 3 messages wait for it. The oldest is from" in shown
        assert "Nothing waits for it." in shown
        assert Endpoint.objects.get(pk=failing.pk).failures == 3

    def test_the_log_tells_the_tries_of_a_message_in_words_whk_09(self, signed_in, shop, receiver, clock) -> None:
        receiver.plan = [hang]
        done_job(make_lane())
        deliver(shop, clock)
        clock.on(10)
        deliver(shop, clock)

        assert "time-out, then ok" in text(signed_in.get(reverse("deliveries")))
        shown = text(signed_in.get(reverse("delivery", args=[Delivery.objects.get().pk])))
        assert "It did not answer in time. Whether it has the message is not known." in shown
        assert "It took the message." in shown
        assert f'"id": "{Message.objects.get().key}"' in shown

    def test_a_jobs_page_says_what_became_of_each_of_its_messages(self, signed_in, shop, receiver, clock) -> None:
        job = done_job(make_lane())
        deliver(shop, clock)

        shown = signed_in.get(reverse("job", args=[job.pk]))

        assert "decision shop : delivered" in text(shown)
        assert reverse("delivery", args=[Delivery.objects.get().pk]) in shown.content.decode()

    def test_filters_narrow_the_log_and_its_empty_page_says_so(self, signed_in, shop, receiver, clock) -> None:
        jobs = [done_job(make_lane()) for _count in range(2)]
        deliver(shop, clock)

        def rows(**query: str) -> int:
            return signed_in.get(reverse("deliveries"), query).content.decode().count("<tr>") - 1

        assert rows() == rows(state="delivered") == rows(endpoint="shop") == rows(endpoint="nobody") == 2
        assert rows(ticket=jobs[0].ticket.external_id) == 1
        assert "No delivery for this filter" in text(signed_in.get(reverse("deliveries"), {"state": "given_up"}))
        assert "No delivery for this filter" in text(signed_in.get(reverse("deliveries"), {"ticket": "a\0b"}))

    def test_hostile_ids_and_answers_are_shown_as_text(self, signed_in, shop, receiver, clock, monkeypatch) -> None:
        monkeypatch.setattr("queue_core.relay.posting.is_allowed_inside", lambda _address: False)
        receiver.then = answer(500, b"<script>alert(1)</script>")
        done_job(make_lane(), external_id="<b>x</b>/y z?")
        deliver(shop, clock)

        for url in (reverse("deliveries"), reverse("delivery", args=[Delivery.objects.get().pk])):
            shown = signed_in.get(url).content.decode()
            assert "<b>x" not in shown
            assert "<script>alert" not in shown
            assert "&lt;script&gt;alert" in shown


class TestActs:
    def act(self, client, name: str, endpoint: Endpoint, **data: str):
        return client.post(reverse(name, args=[endpoint.pk]), data, follow=True)

    def test_disable_and_enable_say_what_becomes_of_the_messages(self, signed_in, shop) -> None:
        assert "Its messages are kept" in text(self.act(signed_in, "endpoint_disable", shop, reason="release"))
        again = self.act(signed_in, "endpoint_disable", shop)
        assert again.status_code == 409
        assert "The endpoint is disabled already. leo" in text(again)
        assert "Disabled by leo" in text(signed_in.get(reverse("deliveries")))

        assert "goes out now, in order" in text(self.act(signed_in, "endpoint_enable", shop))
        assert Endpoint.objects.get().state == "enabled"

    def test_a_reason_that_is_too_long_or_holds_a_nul_is_said(self, signed_in, shop) -> None:
        for reason in ("x" * 501, "a\0b"):
            assert self.act(signed_in, "endpoint_disable", shop, reason=reason).status_code == 422
        assert Endpoint.objects.get().state == "enabled"

    def test_a_test_message_leads_to_its_own_page(self, signed_in, shop, receiver, clock) -> None:
        shown = self.act(signed_in, "endpoint_test", shop)

        assert "A test message is on its way to shop" in text(shown)
        clock.on(5)
        relay.send_due(shop.pk, clock=clock)
        assert "It took the message." in text(signed_in.get(shown.request["PATH_INFO"]))

    def test_an_administrator_retires_a_disabled_endpoint(self, client, ada, shop, clock) -> None:
        client.force_login(ada)
        relay.disable(shop.pk, person=ada, clock=clock)

        self.act(client, "endpoint_retire", shop)

        assert Endpoint.objects.get().state == "retired"
        assert self.act(client, "endpoint_enable", shop).status_code == 409
        assert "No endpoint yet" in text(client.get(reverse("deliveries")))

    def test_what_does_not_exist_is_not_found(self, signed_in) -> None:
        for name in ("endpoint_disable", "endpoint_test", "delivery_replay", "endpoint_try_now"):
            assert signed_in.post(reverse(name, args=[4711])).status_code == 404
        assert signed_in.get(reverse("delivery", args=[4711])).status_code == 404
        assert signed_in.post(reverse("deliveries_replay"), {"up_to": "x"}).status_code == 404

    def test_one_message_is_sent_again_from_its_page(self, signed_in, shop, receiver, clock) -> None:
        done_job(make_lane())
        deliver(shop, clock)
        one = Delivery.objects.get()

        shown = text(signed_in.post(reverse("delivery_replay", args=[one.pk]), follow=True))
        assert "1 message is sent again, with the same id." in shown
        assert "Nothing was sent again" in text(signed_in.post(reverse("delivery_replay", args=[one.pk]), follow=True))

        clock.on(1)
        relay.send_due(shop.pk, clock=clock)
        assert len(set(receiver.ids)) == 1
        assert len(receiver.ids) == 2

    def test_a_filters_messages_are_counted_first_and_those_counted_are_sent(
        self, signed_in, shop, receiver, clock
    ) -> None:
        for _count in range(3):
            done_job(make_lane())
        deliver(shop, clock)
        url = f"{reverse('deliveries_replay')}?endpoint=shop"
        page = signed_in.get(url)
        assert "Send 3 messages again" in text(page)
        done_job(make_lane())
        deliver(shop, clock)
        # Under way when they were counted.
        Delivery.objects.filter(pk=page.context["up_to"]).update(ended_at=DATABASE_CLOCK.now())

        shown = text(signed_in.post(url, counted(page), follow=True))

        assert "2 messages are sent again, with the same ids." in shown
        assert Delivery.objects.filter(state="pending").count() == 2
        for sent in ({"up_to": 9}, {"up_to": 9, "as_of": "2026-01-01T00:00:00"}, {"up_to": 9, "as_of": "now"}):
            assert signed_in.post(url, sent).status_code == 404

    def test_what_cannot_be_counted_in_time_is_said_and_is_no_error_pgq_21(
        self, signed_in, shop, receiver, clock, monkeypatch
    ) -> None:
        done_job(make_lane())
        deliver(shop, clock)
        monkeypatch.setattr("reviewboard.paging.TIME_LIMIT", "20ms")
        slow = "pg_sleep(0.5) IS NOT NULL"
        monkeypatch.setattr(relay, "replayable", lambda found: found.extra(where=[slow]))

        shown = signed_in.get(reverse("deliveries_replay"))

        assert shown.status_code == 302
        monkeypatch.setattr("reviewboard.paging.TIME_LIMIT", "3s")
        assert "The list could not be read in time." in text(signed_in.get(shown.url))

    def test_of_an_endpoint_that_was_renamed_meanwhile_nothing_is_sent_again_adm_04(
        self, signed_in, shop, receiver, clock
    ) -> None:
        """And above all not the messages of all the others."""
        done_job(make_lane())
        deliver(shop, clock)
        url = f"{reverse('deliveries_replay')}?endpoint=shop"
        sent = counted(signed_in.get(url))
        Endpoint.objects.update(name="store")

        assert "Nothing was sent again" in text(signed_in.post(url, sent, follow=True))
        assert not Delivery.objects.filter(state="pending").exists()


class TestAdmin:
    @pytest.fixture
    def admin(self, client, ada):
        ada.is_staff = True
        ada.save()
        client.force_login(ada)
        return client

    def fields(self, address: str, **changed: object) -> dict[str, object]:
        return {
            "name": "shop", "address": address, "kinds": ["decision", "outage.opened"], "lanes": [],
            "time_limit": "00:00:05", "parallel": 4, "max_tries": 16, **changed,
        }  # fmt: skip

    def test_a_new_endpoint_shows_its_secret_once_and_it_signs(self, admin, receiver, clock) -> None:
        lane = make_lane()
        shown = admin.post(
            reverse("admin:queue_core_endpoint_add"), self.fields(receiver.url, lanes=[lane.pk]), follow=True
        )

        [secret] = re.findall(r"whsec_[\w+/=]+", unescape(shown.content.decode()))
        endpoint = Endpoint.objects.get()
        assert (endpoint.kinds, endpoint.lanes) == (["decision", "outage.opened"], [lane.pk])
        assert endpoint.time_limit == timedelta(seconds=5)
        assert list(AuditEntry.objects.order_by("pk").values_list("act", flat=True)) == [
            "endpoint.added",
            "endpoint.secret_made",
        ]
        done_job(lane)
        deliver(endpoint, clock)
        Webhook(secret).verify(receiver.requests[0].body, receiver.requests[0].headers)
        change = reverse("admin:queue_core_endpoint_change", args=[endpoint.pk])
        assert secret not in admin.get(change).content.decode()

    def test_an_inner_address_is_refused_on_each_path_whk_03(self, admin, shop, receiver, settings) -> None:
        settings.QUEUE_CORE_ALLOWED_NETWORKS = []
        add, change = (
            reverse("admin:queue_core_endpoint_add"),
            reverse("admin:queue_core_endpoint_change", args=[shop.pk]),
        )
        for url, name in ((add, "other"), (change, "shop")):
            loaded = form_of(admin, url).get("loaded", "")
            sent = self.fields("https://127.0.0.1:5432/", name=name, loaded=loaded)
            assert "is not a public address" in text(admin.post(url, sent))

        Endpoint.objects.update(address=f"http://127.0.0.1:{receiver.port}/")
        done_job(make_lane())
        deliver(shop, DATABASE_CLOCK)
        assert receiver.requests == []
        assert Delivery.objects.get().last_outcome == "forbidden"

    def test_a_change_is_audited_and_one_beside_another_is_told(self, admin, shop, receiver) -> None:
        url = reverse("admin:queue_core_endpoint_change", args=[shop.pk])
        sent = self.fields(receiver.url, parallel=8, loaded=form_of(admin, url)["loaded"])
        assert admin.post(url, sent).status_code == 302
        entry = AuditEntry.objects.get(act="endpoint.changed")
        assert entry.after["parallel"] == 8
        assert entry.after["kinds"] == ["decision", "outage.opened"]

        assert "Somebody else saved this meanwhile" in text(admin.post(url, sent | {"parallel": 2}))
        assert Endpoint.objects.get().parallel == 8

    def test_a_new_secret_signs_beside_the_old_one_for_the_time_chosen(self, admin, shop) -> None:
        old = secret_of(shop)
        url = reverse("admin:queue_core_endpoint_new_secret", args=[shop.pk])
        assert "whsec_" not in admin.get(url).content.decode()

        shown = unescape(admin.post(url, {"old_signs_for": "3600"}).content.decode())

        [new] = re.findall(r"whsec_[\w+/=]+", shown)
        assert new not in (old, "")
        first, second = EndpointSecret.objects.order_by("pk")
        assert first.ends_at - second.made_at == timedelta(hours=1)
        assert second.ends_at is None

    def test_a_lead_makes_no_secret(self, client, leo, shop) -> None:
        leo.is_staff = True
        leo.save()
        client.force_login(leo)

        url = reverse("admin:queue_core_endpoint_new_secret", args=[shop.pk])

        assert client.post(url, {"old_signs_for": "0"}).status_code == 403
        assert EndpointSecret.objects.count() == 1

"""Keys: hashed, shown once, found again, bounded in what and how much, ended at once, and on record."""

import logging
from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction
from django.urls import reverse

from queue_core import api_keys, audit, relay
from queue_core.api_keys import KeyFault
from queue_core.clock import DATABASE_CLOCK, FixedClock
from queue_core.errors import InvalidRequest, NotPermitted
from queue_core.models import ApiKey, ApiKeyUse, AuditEntry, Endpoint
from reviewboard.logs import hide
from tests.admin.forms import form_of
from tests.api.conftest import API, Caller, refused
from tests.factories import at, make_lane

pytestmark = pytest.mark.django_db


class TestKnown:
    def test_a_key_is_found_by_itself_and_stored_nowhere(self, make_key) -> None:
        made = make_key()

        assert api_keys.find(made.secret, now=at(0)) == made.key
        stored = str(list(ApiKey.objects.values())) + str(list(AuditEntry.objects.values()))
        assert made.secret not in stored
        assert made.secret[12:] not in stored

    @pytest.mark.parametrize("changed", [lambda s: s[:-1], lambda s: s + "x", lambda s: s[:12], lambda s: s.upper()])
    def test_what_is_not_the_whole_key_opens_nothing(self, make_key, changed) -> None:
        assert api_keys.find(changed(make_key().secret), now=at(0)) == KeyFault.UNKNOWN

    @pytest.mark.parametrize("shown", ["", "x", "\x00", "ü" * 20, "\ud800", "rbk_" + "0" * 5000, "rbk_00000000_"])
    def test_whatever_is_shown_is_answered(self, db, shown) -> None:
        assert api_keys.find(shown, now=at(0)) == KeyFault.UNKNOWN

    def test_an_expired_and_a_revoked_key_say_so_to_whoever_has_it(self, make_key, ada) -> None:
        ends = DATABASE_CLOCK.now() + timedelta(seconds=50)
        brief, gone = make_key("brief", expires_at=ends), make_key("gone")
        assert api_keys.find(brief.secret, now=ends - timedelta(microseconds=1)) == brief.key

        assert api_keys.revoke(gone.key.pk, person=ada, reason="leaked", clock=DATABASE_CLOCK)

        assert api_keys.find(brief.secret, now=ends) == KeyFault.EXPIRED
        refused(Caller(gone.secret).get("/decisions"), 401, "key_revoked")
        assert not api_keys.revoke(gone.key.pk, person=ada, clock=DATABASE_CLOCK)
        assert AuditEntry.objects.filter(act="apikey.revoked", reason="leaked").count() == 1

    def test_without_a_key_a_call_is_asked_for_one(self, client, db) -> None:
        answer = client.get(f"{API}/decisions")

        refused(answer, 401, "key_missing")
        assert answer.headers["WWW-Authenticate"].startswith("Bearer")
        refused(Caller("rbk_00000000_x").get("/decisions"), 401, "key_unknown")

    @pytest.mark.parametrize(
        ("scope", "path"), [("send", "/decisions"), ("send", "/lanes"), ("read", "/endpoints"), ("read", "/deliveries")]
    )
    def test_a_key_is_for_its_scopes_alone(self, make_key, scope, path) -> None:
        refused(Caller(make_key(scopes=[scope]).secret).get(path), 403, "scope_missing")

    def test_a_key_that_is_for_reading_sends_nothing(self, make_key) -> None:
        call = Caller(make_key(scopes=["read"]).secret)

        for path in ("/tickets", "/tickets/bulk", "/tickets/withdraw"):
            refused(call.post(path, {}), 403, "scope_missing")


class TestTerms:
    @pytest.mark.parametrize(
        ("terms", "field"),
        [
            ({"scopes": []}, "scopes"),
            ({"scopes": ["everything"]}, "scopes"),
            ({"scopes": ["deliveries"], "source": "shop"}, "scopes"),
            ({"scopes": ["deliveries"], "lanes": [1]}, "scopes"),
            ({"expires_at": at(0)}, "expires_at"),
        ],
    )
    def test_terms_that_make_no_sense_are_refused(self, make_key, terms, field) -> None:
        with pytest.raises(InvalidRequest) as fault:
            make_key(**terms)
        assert fault.value.field == field

    def test_only_who_may_makes_and_revokes(self, make_key) -> None:
        from reviewboard.models import Person

        key, nobody = make_key().key, Person.objects.create_user("nobody")
        with pytest.raises(NotPermitted):
            api_keys.make(ApiKey(name="x", scopes=["read"]), person=nobody, clock=DATABASE_CLOCK)
        with pytest.raises(NotPermitted):
            api_keys.revoke(key.pk, person=nobody, clock=DATABASE_CLOCK)

    def test_the_database_keeps_a_key_what_it_was(self, make_key, ada) -> None:
        key = make_key().key
        api_keys.revoke(key.pk, person=ada, clock=DATABASE_CLOCK)

        for change in ({"digest": "x"}, {"prefix": "x"}, {"revoked_at": None, "revoked_by": None}):
            with pytest.raises(IntegrityError, match="made once"), transaction.atomic():
                ApiKey.objects.update(**change)
        with pytest.raises(IntegrityError, match="kept"), transaction.atomic():
            ApiKey.objects.all()._raw_delete("default")


class TestRate:
    def test_a_burst_of_ten_seconds_is_taken_then_one_for_each_step(self, make_key) -> None:
        key, now = make_key(rate=60).key, DATABASE_CLOCK.now() + timedelta(minutes=1)

        taken = [api_keys.charge(key, now=now).remaining for _call in range(10)]
        spent = api_keys.charge(key, now=now)

        assert taken == list(range(9, -1, -1))
        assert (spent.is_spent, spent.wait) == (True, timedelta(seconds=1))
        assert api_keys.charge(key, now=now + timedelta(seconds=0.9)).is_spent
        assert not api_keys.charge(key, now=now + timedelta(seconds=1)).is_spent
        assert api_keys.charge(key, now=now + timedelta(seconds=1)).is_spent

    def test_whoever_keeps_to_the_rate_is_never_refused(self, make_key) -> None:
        key, now = make_key(rate=60).key, DATABASE_CLOCK.now()

        assert not any(api_keys.charge(key, now=now + timedelta(seconds=number)).is_spent for number in range(90))

    def test_a_call_too_many_is_told_when_to_come_again(self, make_key) -> None:
        made = make_key(rate=6)
        call = Caller(made.secret)

        first, second = call.get("/decisions"), call.get("/decisions")

        assert (first.status_code, first.headers["RateLimit-Limit"]) == (200, "1")
        assert first.headers["RateLimit-Remaining"] == "0"
        refused(second, 429, "rate_limited", limit=6)
        assert 1 <= int(second.headers["Retry-After"]) <= 10

    def test_the_last_use_is_noted_by_the_same_write(self, make_key, django_assert_num_queries) -> None:
        made = make_key()
        Caller(made.secret).get("/decisions")

        used = ApiKeyUse.objects.get()
        assert used.last_used_at is not None
        assert used.last_address == "127.0.0.1"
        now = DATABASE_CLOCK.now()
        with django_assert_num_queries(1):
            api_keys.charge(made.key, now=now)


class TestRecord:
    def test_what_a_key_does_stands_under_its_name_and_is_sealed(self, make_key, ada) -> None:
        made = make_key("relay")
        Endpoint.objects.create(name="shop", address="https://shop.example/", created_at=DATABASE_CLOCK.now())

        answer = Caller(made.secret).post("/endpoints/shop/disable", {"reason": "moving"})

        assert answer.json()["endpoint"]["state"] == "disabled"
        entry = AuditEntry.objects.get(act="endpoint.disabled")
        assert (entry.actor_id, entry.key_id, entry.actor_name) == (None, made.key.pk, "key relay")
        assert Endpoint.objects.get().changed_state_name == "key relay"
        audit.seal_committed()
        assert audit.verify().broken_at is None

    def test_an_act_has_one_actor(self, make_key, ada) -> None:
        key = make_key().key

        with pytest.raises(IntegrityError, match="audit_by_a_person_or_a_key"), transaction.atomic():
            AuditEntry.objects.create(at=at(0), actor=ada, key=key, actor_name="x", act="x", subject_type="x")

    def test_no_key_is_in_a_log(self, make_key, caplog, settings) -> None:
        secret = make_key().secret
        settings.DEBUG = True
        caplog.set_level(logging.DEBUG)

        Caller(secret).get("/decisions", {"after": "x"})
        Caller(secret + "x").get("/nothing")

        assert secret not in caplog.text
        shown = hide(None, "", {"event": f"GET /?k={secret}", "error": f"bad {secret}"})
        assert secret not in str(shown)


class TestAdmin:
    @pytest.fixture
    def admin(self, client, ada):
        client.force_login(ada)
        return client

    def test_a_key_is_made_and_shown_once(self, admin, lane) -> None:
        add = reverse("admin:queue_core_apikey_add")
        page = admin.post(
            add, {"name": "shop", "scopes": ["send", "read"], "lanes": [lane.pk], "rate": 60, "source": "shop"}
        )

        text = page.content.decode()
        secret = text[text.index("rbk_") :].split("<")[0].strip()
        assert api_keys.find(secret, now=DATABASE_CLOCK.now()) == ApiKey.objects.get()
        change = admin.get(reverse("admin:queue_core_apikey_change", args=[ApiKey.objects.get().pk])).content.decode()
        assert secret not in change
        assert secret[:12] in change

    def test_it_is_changed_with_a_record_and_revoked_on_a_page_of_its_own(self, admin, make_key) -> None:
        key = make_key().key
        change = reverse("admin:queue_core_apikey_change", args=[key.pk])
        form = form_of(admin, change) | {"scopes": ["read"]}

        assert admin.post(change, form).status_code == 302
        assert admin.post(change, form | {"scopes": ["send"]}).status_code == 200  # loaded before the change
        revoking = reverse("admin:queue_core_apikey_revoke", args=[key.pk])
        assert admin.get(revoking).status_code == 200
        assert ApiKey.objects.get().revoked_at is None
        assert admin.post(revoking, {"reason": "moved"}).status_code == 302

        entry = AuditEntry.objects.get(act="apikey.changed")
        assert (entry.before["scopes"], entry.after["scopes"]) == (list(api_keys.KeyScope.values), ["read"])
        assert ApiKey.objects.get().revoked_at is not None

    def test_a_key_is_neither_deleted_nor_seen_by_others(self, admin, client, make_key) -> None:
        key = make_key().key

        answer = admin.post(reverse("admin:queue_core_apikey_delete", args=[key.pk]), follow=True)

        assert ApiKey.objects.filter(pk=key.pk).exists()
        assert "Revoke" in str(*answer.context["messages"])


def test_a_key_of_some_lanes_reads_decisions_of_these(make_key) -> None:
    from tests.factories import done_job

    shown, hidden = make_lane(), make_lane()
    done_job(hidden)
    job = done_job(shown)
    relay.number_messages(clock=FixedClock(at(5)))

    page = Caller(make_key(scopes=["read"], lanes=[shown.pk]).secret).get("/decisions").json()

    assert [message["data"]["ticket"] for message in page["messages"]] == [job.ticket.external_id]
    assert page["next"] == relay.newest_number()

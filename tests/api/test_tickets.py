"""One ticket at a time: stored once, refused by name, superseded, withdrawn, read."""

import json
from datetime import timedelta

import pytest

from queue_core import contract, recalls, relay
from queue_core.clock import DATABASE_CLOCK, FixedClock
from queue_core.models import Decision, Evidence, Job, Lane, Ticket
from queue_core.recalls import Selection
from queue_core.states import MessageState
from tests.api.conftest import Caller, refused, ticket
from tests.factories import done_job, make_lane, past_the_guards

pytestmark = pytest.mark.django_db


class TestSend:
    def test_a_new_ticket_is_stored_and_a_repeat_is_known(self, call, lane) -> None:
        first, second = call.post("/tickets", ticket()), call.post("/tickets", ticket())

        assert (first.status_code, first.json()["outcome"]) == (201, "stored")
        assert (second.status_code, second.json()["outcome"]) == (200, "known")
        assert Job.objects.get().revision == "v1"

    def test_a_repeat_is_accepted_when_the_deadline_is_over_by_now(self, call, lane) -> None:
        past = DATABASE_CLOCK.now() - timedelta(hours=1)
        deadline = past + timedelta(minutes=1)
        stored = contract.NewTicket("shop", "t1", "v1", lane, {"text": "a"}, deadline=deadline)
        contract.receive(stored, clock=FixedClock(past))

        answer = call.post("/tickets", ticket(deadline=deadline.isoformat()))

        assert (answer.status_code, answer.json()["outcome"]) == (200, "known")

    def test_another_revision_is_a_conflict_that_names_the_current_one(self, call, lane) -> None:
        call.post("/tickets", ticket())

        refused(call.post("/tickets", ticket(revision="v2")), 409, "revision_conflict", current_revision="v1")
        assert Ticket.objects.get().current_revision == "v1"

    def test_a_newer_revision_supersedes_the_one_it_names_and_the_old_one_stays_so(self, call, lane) -> None:
        call.post("/tickets", ticket())

        newer = call.post("/tickets", ticket(revision="v2", replaces="v1"))
        older = call.post("/tickets", ticket())

        assert newer.json() == {
            "outcome": "stored", "source": "shop", "ticket": "t1", "revision": "v2", "current_revision": "v2",
        }  # fmt: skip
        assert (older.status_code, older.json()["outcome"]) == (200, "superseded")
        refused(call.post("/tickets", ticket(7, replaces="v1")), 409, "revision_conflict", field="replaces")

    def test_ids_with_any_characters_come_back_as_they_were_sent(self, call, lane) -> None:
        name = "x y/z?2 o'b4 ünïcode \U0001f9ff %00"

        call.post("/tickets", ticket(ticket=name))
        answer = call.get("/tickets", {"ticket": name, "source": "shop"})

        assert answer.json()["ticket"] == name

    @pytest.mark.parametrize(
        ("fields", "field"),
        [
            ({"ticket": ...}, "ticket"),
            ({"ticket": None}, "ticket"),
            ({"ticket": ""}, "ticket"),
            ({"ticket": "  "}, "ticket"),
            ({"ticket": 12345}, "ticket"),
            ({"ticket": True}, "ticket"),
            ({"ticket": []}, "ticket"),
            ({"ticket": "a\x00b"}, "ticket"),
            ({"ticket": "x" * 201}, "ticket"),
            ({"revision": ...}, "revision"),
            ({"revision": 2}, "revision"),
            ({"source": ...}, "source"),
            ({"source": "x" * 65}, "source"),
            ({"lane": "nowhere"}, "lane"),
            ({"evidence": None}, "evidence"),
            ({"evidence": "x" * (256 * 1024)}, "evidence"),
            ({"evidence": {"text": "\x00"}}, "evidence"),
            ({"deadline": "2027-01-01T10:00:00"}, "deadline"),
            ({"deadline": "2027-01-01"}, "deadline"),
            ({"deadline": 1798794000}, "deadline"),
            ({"deadline": 10**30}, "deadline"),
            ({"deadline": "2026-01-01T00:00:00Z"}, "deadline"),
            ({"severity": 4}, "severity"),
            ({"severity": -1}, "severity"),
            ({"severity": True}, "severity"),
            ({"exposure": "public"}, "exposure"),
            ({"priority": 1}, "priority"),
        ],
    )
    def test_what_is_wrong_is_refused_with_its_field_and_nothing_is_stored_imp_17(
        self, call, lane, fields, field
    ) -> None:
        problem = refused(call.post("/tickets", ticket(**fields)), 400, "invalid_request", field=field)

        assert problem["detail"]
        assert not Ticket.objects.exists()

    @pytest.mark.parametrize(
        "raw",
        [
            b"[]",
            b"{",
            b'{"lane": "posts", "lane": "posts"}',
            b'{"evidence": NaN}',
            b'{"evidence": -Infinity}',
            b'{"evidence": 1e400}',
            b'{"evidence": ' + b"9" * 5000 + b"}",
            b'{"evidence": ' + b"[" * 20_000 + b"]" * 20_000 + b"}",
            b'{"ticket": "\xff"}',
            b'{"ticket": "a"\x00}',
            b'{"ticket": "\\ud800"}',
        ],
    )
    def test_what_is_no_strict_json_is_refused_imp_07_imp_08_imp_09_imp_12(self, call, lane, raw) -> None:
        assert call.post("/tickets", raw).status_code == 400
        assert not Ticket.objects.exists()

    def test_a_byte_order_mark_is_no_part_of_the_body_imp_01(self, call, lane) -> None:
        assert call.post("/tickets", b"\xef\xbb\xbf" + json.dumps(ticket()).encode()).status_code == 201

    def test_limits_of_the_body_name_themselves_imp_13(self, call, lane) -> None:
        large = call.post("/tickets", b'{"evidence": "' + b"x" * 3_000_000 + b'"}')

        refused(large, 413, "body_too_large", limit=1024 * 1024, unit="bytes")
        assert "1048576" in large.json()["detail"]

    def test_a_packed_body_and_another_kind_are_refused_by_name_imp_13(self, call, lane) -> None:
        packed = call.post("/tickets", b"\x1f\x8b", **{"Content-Encoding": "gzip"})

        refused(packed, 415, "encoding_not_supported")
        refused(call.post("/tickets", b"a=1", kind="text/plain"), 415, "media_type_not_supported")
        utf16 = json.dumps(ticket()).encode("utf-16")
        said = "application/json; charset=utf-16"
        sent = call.client.generic("POST", "/api/v1/tickets", utf16, content_type=said, headers=call.headers)
        refused(sent, 415, "media_type_not_supported")

    def test_a_zone_is_kept_to_the_instant_imp_15(self, call, lane) -> None:
        call.post("/tickets", ticket(deadline="2099-01-01T10:00:00+02:00"))

        assert call.get("/tickets", {"ticket": "t1", "source": "shop"}).json()["deadline"] == "2099-01-01T08:00:00Z"


class TestWithdraw:
    def test_a_withdrawn_ticket_ends_and_a_second_call_says_the_same(self, call, lane) -> None:
        call.post("/tickets", ticket())
        name = {"ticket": "t1", "source": "shop"}

        answers = [call.post("/tickets/withdraw", name) for _time in range(2)]

        assert [answer.json() for answer in answers] == [{"outcome": "done", **name}] * 2
        found = call.get("/tickets", name).json()
        assert (found["state"], found["dead_reason"]) == ("DEAD", "withdrawn")

    def test_what_is_not_there_or_misspelt_is_told(self, call, lane) -> None:
        refused(call.post("/tickets/withdraw", {"ticket": "no", "source": "shop"}), 404, "not_found")
        body = {"ticket": "t1", "source": "shop", "revison": "v1"}
        refused(call.post("/tickets/withdraw", body), 400, "invalid_request", field="revison")


class TestRead:
    def test_a_waiting_ticket_says_where_it_waits_and_what_would_move_it(self, call, lane) -> None:
        call.post("/tickets", ticket())

        found = call.get("/tickets", {"ticket": "t1", "source": "shop"}).json()

        assert (found["state"], found["decision"], found["waiting"]["layer"]) == ("WAITING", None, "held")
        assert found["waiting"]["sentence"]
        assert found["waiting"]["mover"]

    def test_a_decision_is_told_once_its_message_is_out_and_not_before(self, call) -> None:
        job = done_job(make_lane(name="posts"), result="REJECTED")
        name = {"ticket": job.ticket.external_id, "source": "test"}

        before = call.get("/tickets", name).json()
        relay.number_messages(clock=DATABASE_CLOCK)
        after = call.get("/tickets", name).json()

        assert (before["decision"], before["result"]) == (None, None)
        assert "rejected" not in json.dumps(before).lower()
        assert (after["decision"]["verdict"], after["decision"]["reason_code"]) == ("REJECTED", "insult")

    def test_a_decision_that_is_kept_back_stays_unsaid(self, call) -> None:
        job = done_job(make_lane(name="posts"), result="REJECTED")
        past_the_guards()
        job.ticket.messages.update(state=MessageState.KEPT_BACK)
        relay.number_messages(clock=DATABASE_CLOCK)

        found = call.get("/tickets", {"ticket": job.ticket.external_id, "source": "test"}).json()

        assert (found["decision"], found["result"]) == (None, None)

    def test_a_decision_that_was_recalled_before_it_went_out_is_never_said(self, call, ada) -> None:
        job = done_job(make_lane(name="posts"), result="REJECTED")
        now = DATABASE_CLOCK.now()
        chosen = Selection(until=now)
        recalls.recall(job.lane_id, chosen, person=ada, reason="wrong", shown=1, clock=FixedClock(now))

        found = call.get("/tickets", {"ticket": job.ticket.external_id, "source": "test"}).json()

        assert Decision.objects.filter(ticket=job.ticket, verdict=None).exists()
        assert (found["decision"], found["result"]) == (None, None)
        assert "rejected" not in json.dumps(found).lower()

    def test_nobody_is_named_to_a_source(self, call, lane, ada) -> None:
        from queue_core import people, roles
        from reviewboard.models import Person

        zoe = Person.objects.create_user("zoe-who-decides")
        roles.assign(zoe, roles.REVIEWER)
        call.post("/tickets", ticket(severity=3))
        people.take_next(person=zoe, clock=DATABASE_CLOCK)

        found = call.get("/tickets", {"ticket": "t1", "source": "shop"}).content.decode()

        assert '"people"' in found
        assert "zoe" not in found


class TestReach:
    """What a key is not for does not exist for it."""

    @pytest.fixture
    def narrow(self, make_key, lane: Lane) -> Caller:
        return Caller(make_key("narrow", source="shop", lanes=[lane.pk]).secret)

    def test_the_source_is_the_keys_and_another_is_refused(self, narrow, lane) -> None:
        assert narrow.post("/tickets", ticket(source=...)).json()["source"] == "shop"
        refused(narrow.post("/tickets", ticket(2, source="blog")), 400, "invalid_request", field="source")

    def test_another_lane_is_as_one_that_does_not_exist(self, narrow, call) -> None:
        other = make_lane(name="images")

        one = narrow.post("/tickets", ticket(lane="images"))
        none = narrow.post("/tickets", ticket(lane="nowhere"))

        assert (one.status_code, one.json()) == (none.status_code, none.json())
        assert not Evidence.objects.filter(jobs__lane=other).exists()

    def test_tickets_of_other_sources_and_lanes_are_neither_read_nor_touched(self, narrow, call, lane) -> None:
        make_lane(name="images", cap=None)
        call.post("/tickets", ticket(1, source="blog"))
        call.post("/tickets", ticket(2, lane="images"))

        for number in (1, 2):
            refused(narrow.get("/tickets", {"ticket": f"t{number}"}), 404, "not_found")
            refused(narrow.post("/tickets/withdraw", {"ticket": f"t{number}"}), 404, "not_found")
        taken = narrow.post("/tickets", ticket(2, source=..., revision="v2", replaces="v1"))
        refused(taken, 400, "invalid_request", field="replaces")
        assert not Job.objects.filter(state="DEAD").exists()

    def test_of_a_ticket_in_another_lane_nothing_is_told_but_that_its_id_is_taken(self, make_key, call, lane) -> None:
        make_lane(name="images", cap=None)
        narrow = Caller(make_key("posts-only", lanes=[lane.pk]).secret)
        call.post("/tickets", ticket(1, lane="images", revision="hidden"))
        tried = [ticket(1), ticket(1, revision="hidden"), ticket(1, revision="v3", replaces="hidden")]

        for sent, field in zip(tried, ("ticket", "ticket", "replaces"), strict=True):
            refused(narrow.post("/tickets", sent), 400, "invalid_request", field=field)
        answers = narrow.lines(*tried, ticket(2))

        assert [one.get("outcome") for one in answers] == ["refused", "refused", "refused", "stored", None]
        assert not any("hidden" in one.get("reason", "") or "current_revision" in one for one in answers)


@pytest.mark.parametrize("place", ["ticket", "source"])
def test_a_nul_in_an_address_is_refused_with_its_field_imp_07(call, place) -> None:
    asked = {"ticket": "t1", "source": "shop"} | {place: "a\0b"}

    refused(call.get("/tickets", asked), 400, "invalid_request", field=place)

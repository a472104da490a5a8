"""Restricted evidence at the desk, and the page on which content is kept, reported and erased."""

import re
from datetime import timedelta

import pytest
from django.urls import reverse

from queue_core import people
from queue_core.clock import DATABASE_CLOCK
from queue_core.models import AuditEntry, Evidence, EvidenceReport, Item, Job, PreservationHold
from queue_core.states import Verdict
from reviewboard.models import Person
from tests.desk.backlog import make_live_lane, manual_now, token_of, waiting_now
from tests.people.cast import REVIEWER, person, rita

pytestmark = pytest.mark.django_db

SECRET = "what few should see"
SPECIALIST = (*REVIEWER, "view_restricted", "report_evidence", "preserve_evidence")


@pytest.fixture
def item(db) -> Item:
    return manual_now(make_live_lane(), is_restricted=True, evidence={"text": SECRET})


@pytest.fixture
def sue(db) -> Person:
    return person("sue", *SPECIALIST)


@pytest.fixture
def ada(db) -> Person:
    return person("ada", "view_board", "erase_evidence", "preserve_evidence")


def held_by(client, item: Item, who: Person) -> dict[str, str]:
    client.force_login(who)
    assert people.take(item.pk, person=who, clock=DATABASE_CLOCK).token is not None
    token = token_of(item)
    return {"fence": token.fence, "key": str(token.key)}


def acts(*names: str) -> list[str]:
    return list(AuditEntry.objects.filter(act__in=names).order_by("pk").values_list("act", flat=True))


def text(response) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode()))


class TestLook:
    def test_it_is_shown_after_its_purpose_is_on_record_and_for_this_one_look(self, client, item, sue) -> None:
        token = held_by(client, item, sue)
        assert SECRET not in client.get(reverse("item", args=[item.pk])).content.decode()

        shown = client.post(reverse("item_look", args=[item.pk]), token | {"purpose": "to decide the item"})

        assert (shown.status_code, shown["Cache-Control"]) == (200, "no-store")
        assert SECRET in shown.content.decode()
        entry = AuditEntry.objects.get(act="evidence.looked_at")
        assert (entry.actor, entry.reason, entry.lane_id) == (sue, "to decide the item", item.lane_id)
        assert SECRET not in client.get(reverse("item", args=[item.pk])).content.decode()

    @pytest.mark.parametrize("purpose", ["", "   ", "x" * 301])
    def test_without_a_purpose_nothing_is_shown_nor_on_record(self, client, item, sue, purpose: str) -> None:
        token = held_by(client, item, sue)

        answer = client.post(reverse("item_look", args=[item.pk]), token | {"purpose": purpose})

        assert answer.status_code == 422
        assert SECRET not in answer.content.decode()
        assert acts("evidence.looked_at") == []

    def test_whoever_does_not_hold_the_item_sees_nothing(self, client, item, sue) -> None:
        token = held_by(client, item, sue)
        client.force_login(person("tom", *SPECIALIST))

        answer = client.post(reverse("item_look", args=[item.pk]), token | {"purpose": "curious"})

        assert answer.status_code == 409
        assert SECRET not in answer.content.decode()
        assert acts("evidence.looked_at") == []

    def test_a_reviewer_without_the_right_finds_no_such_page(self, client, item) -> None:
        client.force_login(rita())

        assert client.post(reverse("item_look", args=[item.pk]), {"purpose": "curious"}).status_code == 404

    def test_a_refused_decision_shows_the_item_without_its_content(self, client, item, sue) -> None:
        token = held_by(client, item, sue)

        answer = client.post(reverse("item_decide", args=[item.pk]), token | {"verdict": ""})

        assert answer.status_code == 422
        assert SECRET not in answer.content.decode()


class TestReading:
    def test_reading_evidence_is_on_record_once_a_look_and_polls_are_none(self, client) -> None:
        item, who = manual_now(make_live_lane(), evidence={"text": "plain words"}), rita()
        client.force_login(who)
        address = reverse("item", args=[item.pk])

        client.get(address)
        client.get(address, headers={"HX-Request": "true", "X-Live-Poll": "1"})
        client.get(reverse("job", args=[item.job_id]))

        read = AuditEntry.objects.filter(act="evidence.read").order_by("pk")
        assert [(entry.subject_type, entry.subject_id, entry.actor) for entry in read] == [
            ("item", str(item.pk), who),
            ("job", str(item.job_id), who),
        ]

    def test_an_act_refused_is_a_look_for_whoever_never_opened_the_page(self, client) -> None:
        item, job = manual_now(make_live_lane(), evidence={"text": SECRET}), waiting_now(make_live_lane())
        client.force_login(person("leo", *REVIEWER, "move_deadlines"))
        acts_by_hand = [reverse("item_decide", args=[item.pk]), reverse("item_skip", args=[item.pk])]

        client.head(reverse("item", args=[item.pk]))
        assert acts("evidence.read") == []
        for address in [*acts_by_hand, reverse("job_move_deadline", args=[job.pk])]:
            assert client.post(address, {}).status_code in (409, 422)

        read = AuditEntry.objects.filter(act="evidence.read").order_by("pk").values_list("subject_type", "subject_id")
        assert list(read) == [("item", str(item.pk)), ("job", str(job.pk))]

    def test_a_page_that_shows_no_evidence_is_no_reading(self, client, item, sue) -> None:
        client.force_login(sue)

        client.get(reverse("item", args=[item.pk]))
        client.get(reverse("job", args=[item.job_id]))

        assert acts("evidence.read") == []


class TestRestrictAndLeave:
    def test_it_restricts_gives_back_and_is_for_specialists_from_then_on(self, client, sue) -> None:
        item, who = manual_now(make_live_lane(), evidence={"text": SECRET}), rita()
        token = held_by(client, item, who)

        answer = client.post(reverse("item_restrict", args=[item.pk]), token)

        assert answer.status_code == 302
        assert Evidence.objects.get().is_restricted
        assert Item.objects.get().taken_by is None
        assert acts("evidence.restricted") == ["evidence.restricted"]
        assert people.take_next(person=who, clock=DATABASE_CLOCK).token is None
        assert people.take_next(person=sue, clock=DATABASE_CLOCK).token is not None

    def test_by_an_assignment_that_is_over_nothing_is_changed(self, client) -> None:
        item, who = manual_now(make_live_lane()), rita()
        token = held_by(client, item, who)
        people.give_back(token_of(item), person=who, clock=DATABASE_CLOCK)

        assert client.post(reverse("item_restrict", args=[item.pk]), token).status_code == 409
        assert not Evidence.objects.get().is_restricted


class TestKeeping:
    HOLD = {"preserve-authority": "Police", "preserve-reference": "B-7", "preserve-reason": "asked in writing"}

    def test_a_hold_keeps_the_content_to_the_end_of_its_day_and_an_erasure_is_refused_with_a_sentence(
        self, client, item, sue, ada
    ) -> None:
        client.force_login(sue)
        day = DATABASE_CLOCK.now().date() + timedelta(days=30)
        page = reverse("keeping", args=[item.ticket_id])
        placed = client.post(
            reverse("keeping_preserve", args=[item.ticket_id]), self.HOLD | {"preserve-until": day.isoformat()}
        )
        assert placed.status_code == 302
        assert PreservationHold.objects.get().until.date() == day + timedelta(days=1)
        assert "Police" in text(client.get(page))

        client.force_login(ada)
        refused = client.post(reverse("keeping_erase", args=[item.ticket_id]), {"erase-ground": "asked for"})

        assert refused.status_code == 409
        assert "kept for a lawful reason until" in text(refused)
        assert Evidence.objects.get().body
        assert acts("ticket.preserved", "ticket.erase_refused") == ["ticket.preserved", "ticket.erase_refused"]

    def test_a_lifted_hold_lets_the_content_be_erased(self, client, item, ada) -> None:
        hold = people.preserve(
            item.ticket_id, person=ada, authority="Police", reference="B-7", reason="asked", clock=DATABASE_CLOCK,
            until=DATABASE_CLOCK.now() + timedelta(days=3),
        )  # fmt: skip
        client.force_login(ada)
        lift = reverse("keeping_lift", args=[item.ticket_id, hold.pk])
        assert client.post(lift, {"reason": ""}).status_code == 422
        assert client.post(lift, {"reason": "the case is closed"}).status_code == 302
        assert client.post(lift, {"reason": "once more"}).status_code == 409

        erased = client.post(reverse("keeping_erase", args=[item.ticket_id]), {"erase-ground": "asked for"})

        assert erased.status_code == 302
        assert Evidence.objects.get().body == ""
        assert "asked for" in text(client.get(reverse("keeping", args=[item.ticket_id])))

    def test_a_report_stands_with_authority_and_reference_once(self, client, item, sue) -> None:
        client.force_login(sue)
        sent = {
            "report-authority": "NCMEC", "report-reference": "4711", "report-reason": "the law asks for it",
            "report-evidence": item.job.evidence_id,
        }  # fmt: skip

        for _ in range(2):
            assert client.post(reverse("keeping_report", args=[item.ticket_id]), sent).status_code == 302

        report = EvidenceReport.objects.get()
        assert (report.authority, report.reference, report.reported_by) == ("NCMEC", "4711", sue)
        assert acts("evidence.reported") == ["evidence.reported"]
        assert "NCMEC" in text(client.get(reverse("keeping", args=[item.ticket_id])))

    def test_content_that_is_not_restricted_is_not_reported(self, client, sue) -> None:
        job = manual_now(make_live_lane()).job
        client.force_login(sue)
        sent = {"report-authority": "A", "report-reference": "1", "report-reason": "r"}

        answer = client.post(
            reverse("keeping_report", args=[job.ticket_id]), sent | {"report-evidence": job.evidence_id}
        )

        assert answer.status_code == 422
        assert not EvidenceReport.objects.exists()

    @pytest.mark.parametrize(
        "changed",
        [
            {"preserve-until": "2020-01-01"},
            {"preserve-until": "9999-12-31"},
            {"preserve-until": "0001-01-01"},
            {"preserve-authority": "a\0b"},
            {"preserve-reference": "x" * 121},
            {"preserve-reason": " "},
        ],
    )
    def test_a_hold_out_of_bounds_is_refused_and_says_which_field(self, client, item, sue, changed) -> None:
        client.force_login(sue)
        day = DATABASE_CLOCK.now().date() + timedelta(days=30)

        answer = client.post(
            reverse("keeping_preserve", args=[item.ticket_id]),
            self.HOLD | {"preserve-until": day.isoformat()} | changed,
        )

        assert answer.status_code == 422
        assert not PreservationHold.objects.exists()

    def test_none_of_it_is_there_for_a_reviewer(self, client, item) -> None:
        client.force_login(rita())

        assert client.get(reverse("keeping", args=[item.ticket_id])).status_code == 404
        assert "Keep, report or erase" not in text(client.get(reverse("job", args=[item.job_id])))
        assert Job.objects.get().evidence.erased_at is None


class TestLift:
    @pytest.fixture
    def liz(self, db) -> Person:
        return person("liz", *SPECIALIST, "lead_desk")

    def lift(self, client, item: Item, who: Person, reason: str = "a cake, not a bomb"):
        client.force_login(who)
        evidence = item.job.evidence
        address = reverse("keeping_unrestrict", args=[evidence.ticket_id, evidence.pk])
        return client.post(address, {"reason": reason})

    def test_a_lead_who_may_see_it_lifts_the_restriction_with_a_reason_that_stands_in_the_audit(
        self, client, item, liz
    ) -> None:
        keeping = reverse("keeping", args=[item.ticket_id])
        assert "Lift the restriction" in text(seen(client, liz, "keeping", item.ticket_id))

        answer = self.lift(client, item, liz)

        assert (answer.status_code, answer["Location"]) == (302, keeping)
        entry = AuditEntry.objects.get(act="evidence.restriction_lifted")
        assert (entry.actor, entry.reason, entry.before) == (liz, "a cake, not a bomb", {"restricted": True})
        assert people.take(item.pk, person=rita(), clock=DATABASE_CLOCK).token is not None
        assert SECRET in seen(client, Person.objects.get(username="rita"), "item", item.pk).content.decode()
        assert "Lift the restriction" not in text(seen(client, liz, "keeping", item.ticket_id))
        assert self.lift(client, item, liz).status_code == 409

    @pytest.mark.parametrize("lacking", ["view_restricted", "lead_desk"])
    def test_one_of_the_two_rights_alone_lifts_nothing(self, client, item, lacking: str) -> None:
        rights = {*SPECIALIST, "lead_desk"} - {lacking}

        assert self.lift(client, item, person("half", *rights)).status_code == 404
        assert Evidence.objects.get().is_restricted

    def test_without_a_reason_or_once_it_was_reported_it_stays_restricted(self, client, item, liz) -> None:
        assert self.lift(client, item, liz, reason=" ").status_code == 422
        people.report(item.job.evidence_id, person=liz, authority="A", reference="1", reason="r", clock=DATABASE_CLOCK)

        answer = self.lift(client, item, liz)

        assert answer.status_code == 409
        assert "was reported to an authority" in text(answer)
        assert "Lift the restriction" not in text(answer)
        assert Evidence.objects.get().is_restricted


class TestWordsAboutIt:
    def test_what_was_said_of_restricted_content_is_for_those_who_may_see_it(self, client, sue) -> None:
        item, who = manual_now(make_live_lane(), evidence={"text": SECRET}), rita()
        assert people.take(item.pk, person=who, clock=DATABASE_CLOCK).token is not None
        people.escalate(token_of(item), person=who, reason="it says zebra words", clock=DATABASE_CLOCK)
        job = item.job_id
        assert "zebra" in text(seen(client, who, "item", item.pk))
        Evidence.objects.update(is_restricted=True)
        assert "zebra" not in text(seen(client, who, "item", item.pk))
        lead = person("lea", *SPECIALIST, "lead_desk")
        assert "zebra" in text(seen(client, lead, "item", item.pk))

        assert people.take(item.pk, person=lead, clock=DATABASE_CLOCK).token is not None
        people.resolve(
            token_of(item), person=lead, verdict=Verdict.APPROVED, note="zebra words indeed", clock=DATABASE_CLOCK
        )

        assert "zebra" not in text(seen(client, who, "job", job)) + text(seen(client, who, "item", item.pk))
        assert "zebra" in text(seen(client, lead, "job", job))

    def test_the_lists_of_leads_leave_them_out_too(self, client) -> None:
        lane, who = make_live_lane(), rita()
        for act, word in ((people.escalate, "zebra"), (people.skip, "gnu")):
            item = manual_now(lane, evidence={"text": SECRET})
            assert people.take(item.pk, person=who, clock=DATABASE_CLOCK).token is not None
            act(token_of(item), person=who, reason=word, clock=DATABASE_CLOCK)
        lead, specialist = person("lea", *REVIEWER, "lead_desk"), person("sal", *SPECIALIST, "lead_desk")
        assert "zebra" in text(seen(client, lead, "desk"))
        assert "gnu" in text(seen(client, lead, "desk_numbers"))

        Evidence.objects.update(is_restricted=True)

        assert "zebra" not in text(seen(client, lead, "desk"))
        assert "gnu" not in text(seen(client, lead, "desk_numbers"))
        assert "zebra" in text(seen(client, specialist, "desk"))
        assert "gnu" in text(seen(client, specialist, "desk_numbers"))


def seen(client, who: Person, name: str, *pk: int):
    client.force_login(who)
    return client.get(reverse(name, args=pk))

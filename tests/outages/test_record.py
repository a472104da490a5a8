"""The record of an outage: its log kept by people, and what it came to, on its page and for other programs."""

import csv
import io
from datetime import timedelta

import pytest
from django.urls import reverse

from queue_core import contract, figures, outage_record, ramp, roles
from queue_core.clock import DATABASE_CLOCK
from queue_core.errors import InvalidRequest, NotPermitted
from queue_core.models import AuditEntry, Lane, Outage, OutageEntry
from queue_core.spreadsheet import safe_cell
from tests.board.scene import a_connection, a_lane, ago, break_down, fill, start, work, workers_seen
from tests.factories import at, clock, dead_job, make_connection, make_lane

pytestmark = pytest.mark.django_db

WHY = "the model answers nobody"


@pytest.fixture
def outage(leo) -> Outage:
    """Opened by hand at 100 s, with Leo on duty."""
    acted = ramp.open_outage(make_connection().pk, person=leo, cause="model_trouble", reason=WHY, clock=clock(100))
    return acted.outage


class TestLog:
    def test_a_note_is_a_line_with_name_and_time_also_when_it_is_closed(self, outage, leo):
        ramp.write_note(outage.pk, person=leo, text=" Provider confirmed. ", clock=clock(110))
        ramp.close_outage(outage.pk, person=leo, reason="all lanes run", clock=clock(120))
        ramp.write_note(outage.pk, person=leo, text="Cause: a certificate.", clock=clock(130))

        notes = OutageEntry.objects.filter(outage=outage, code="note").order_by("pk")
        assert [(one.at, one.by, one.text) for one in notes] == [
            (at(110), leo, "Provider confirmed."),
            (at(130), leo, "Cause: a certificate."),
        ]

    def test_whoever_takes_over_is_on_duty_and_the_note_is_kept(self, outage, leo, cast):
        lena = cast("lena", roles.LEAD)

        acted = ramp.hand_over(
            outage.pk, to=lena, shown=leo.pk, note="Ticket 4711 at the provider.", person=leo, clock=clock(110)
        )

        outage.refresh_from_db()
        assert acted.outcome == "handed_over"
        assert (outage.lead_on_duty, outage.handover_note) == (lena, "Ticket 4711 at the provider.")
        entry = OutageEntry.objects.get(code="handed_over")
        assert (entry.by, entry.params["to"], entry.text) == (leo, "lena", "Ticket 4711 at the provider.")
        assert AuditEntry.objects.get(act="outage.handed_over").before == {"lead_on_duty": leo.pk}

    def test_two_who_take_over_at_once_do_not_pass_each_other_by(self, outage, leo, cast):
        lena, mia = cast("lena", roles.LEAD), cast("mia", roles.LEAD)
        ramp.hand_over(outage.pk, to=lena, shown=leo.pk, note="mine now", person=lena, clock=clock(110))

        second = ramp.hand_over(outage.pk, to=mia, shown=leo.pk, note="no, mine", person=mia, clock=clock(111))

        outage.refresh_from_db()
        assert (second.outcome, outage.lead_on_duty) == ("other_lead", lena)

    def test_nobody_is_put_on_duty_who_may_not_keep_it_nor_on_a_closed_one(self, outage, leo, rita):
        with pytest.raises(InvalidRequest, match="may not keep"):
            ramp.hand_over(outage.pk, to=rita, shown=leo.pk, note="yours", person=leo, clock=clock(110))
        ramp.close_outage(outage.pk, person=leo, reason="all lanes run", clock=clock(120))

        acted = ramp.hand_over(outage.pk, to=leo, shown=leo.pk, note="mine", person=leo, clock=clock(130))

        assert acted.outcome == "already_closed"

    def test_a_reviewer_writes_nothing_and_an_empty_note_is_none(self, outage, leo, rita):
        with pytest.raises(NotPermitted):
            ramp.write_note(outage.pk, person=rita, text="hello", clock=clock(110))
        with pytest.raises(InvalidRequest, match="next person"):
            ramp.write_note(outage.pk, person=leo, text="  ", clock=clock(110))
        with pytest.raises(InvalidRequest, match="At most 1000"):
            ramp.write_note(outage.pk, person=leo, text="x" * 1001, clock=clock(110))


class TestFigures:
    def test_deaths_are_counted_by_severity_and_stay_counted_when_handled(self, outage, leo):
        lane = make_lane(connection=outage.connection)
        for severity in (1, 2, 2):
            dead_job(lane, deadline=200, severity=severity)
        before = dead_job(lane, deadline=50)
        handled = lane.jobs.filter(severity=2, state="DEAD").first()
        contract.requeue(handled.pk, person=leo, deadline=at(9000), max_attempts=3, reason=WHY, clock=clock(300))

        record = outage_record.record_of(outage, now=at(400))

        assert record.deaths_by_severity == {2: 2, 1: 1}
        assert before.severity not in (2, 3)

    def test_the_lane_with_the_most_severe_ticket_is_proposed_first_then_deaths(self, outage):
        now = DATABASE_CLOCK.now()
        lanes = {name: make_lane(name=name, cap=5) for name in ("calm", "dying", "severe")}
        wait(lanes["calm"], now, hours=9)
        wait(lanes["dying"], now, hours=0.5)
        wait(lanes["severe"], now, hours=9, severity=2)

        order = outage_record.proposed_order(list(lanes.values()), now=now)

        assert [(one.lane.name, one.severity, one.dying) for one in order] == [
            ("severe", 2, 0), ("dying", 1, 1), ("calm", 1, 0),
        ]  # fmt: skip

    def test_a_time_whose_minutes_are_not_kept_any_more_has_no_flow_and_no_invented_zero(self, outage, settings):
        settings.QUEUE_CORE_FIGURES_KEPT = timedelta(minutes=1)

        record = outage_record.record_of(outage, now=at(1000))

        assert (record.counts, record.waits, list(record.points)) == (None, None, [])


def wait(lane: Lane, now, *, hours: float, severity: int = 1) -> None:
    from dataclasses import replace

    from queue_core.clock import FixedClock
    from tests.factories import new_ticket

    ticket = replace(new_ticket(lane, severity=severity), deadline=now + timedelta(hours=hours), submitted_at=None)
    contract.receive(ticket, clock=FixedClock(now - timedelta(minutes=1)))


@pytest.fixture
def told(leo, rita) -> Outage:
    """An outage with a hold, a probe, work by the model and tickets that still wait."""
    lane = a_lane("posts", title="Posts", connection=a_connection("posts-model"))
    fill(lane, 30, waited=timedelta(minutes=2))
    start(lane, leo)
    break_down(lane)
    workers_seen()
    start(Lane.objects.get(pk=lane.pk), leo)
    contract.wake_due(clock=ago(-timedelta(hours=1)))
    work(lane, 2)
    figures.fold()
    return Outage.objects.get()


class TestPage:
    def test_it_tells_what_happened_with_one_chart_and_proposes_an_order(self, client, vera, told):
        client.force_login(vera)

        page = client.get(reverse("outage", args=[told.pk])).content.decode()

        assert "Came in" in page
        assert page.count('<figure class="chart">') == 1
        assert "Proposed order of the lanes" in page
        assert "2: 2 approved, 0 rejected" in page
        assert "<form" not in page.split('id="content"')[1]

    def test_a_lead_writes_hands_over_and_is_told_why_not(self, client, leo, cast, told):
        lena = cast("lena", roles.LEAD)
        client.force_login(leo)

        said = client.post(reverse("outage_note", args=[told.pk]), {"note-text": "<b>Provider</b> called."})
        empty = client.post(reverse("outage_note", args=[told.pk]), {"note-text": " "})
        taken = {"hand-over-shown": "", "hand-over-to": lena.pk, "hand-over-note": "See the provider's page."}
        first = client.post(reverse("outage_hand_over", args=[told.pk]), taken)
        second = client.post(reverse("outage_hand_over", args=[told.pk]), taken)
        unsteady = client.post(
            reverse("outage_close_here", args=[told.pk]), {"outage-outage": told.pk, "outage-reason": "it runs again"}
        )

        assert [answer.status_code for answer in (said, empty, first, second, unsteady)] == [302, 422, 302, 409, 409]
        assert "Another lead is on duty by now." in second.content.decode()
        assert "See the provider&#x27;s page." in second.content.decode()
        page = client.get(reverse("outage", args=[told.pk])).content.decode()
        assert "&lt;b&gt;Provider&lt;/b&gt; called." in page

    def test_one_is_opened_by_hand_once(self, client, leo, rita):
        connection = make_connection()
        sent = {"open-connection": connection.pk, "open-cause": "model_trouble", "open-reason": WHY}
        client.force_login(leo)
        assert client.get(reverse("outage_open")).status_code == 200

        first, second = (client.post(reverse("outage_open"), sent) for _time in range(2))
        nameless = client.post(reverse("outage_open"), sent | {"open-cause": "auto_unavailable"})

        assert (first.status_code, second.status_code, nameless.status_code) == (302, 409, 422)
        assert Outage.objects.get().opened_by == leo
        client.force_login(rita)
        assert client.get(reverse("outage_open")).status_code == 404
        assert client.post(reverse("outage_open"), sent).status_code == 404

    def test_json_holds_every_raise_with_its_frozen_figures_and_name(self, client, vera, told):
        client.force_login(vera)

        record = client.get(reverse("outage_json", args=[told.pk])).json()

        assert [(one["stage"], one["by"]) for one in record["raises"]] == [(1, "leo")]
        assert record["raises"][0]["figures"]["load"]["waiting"] == 30
        assert record["decisions"] == [{"by": "model", "verdict": "APPROVED", "number": 2}]
        assert {entry["code"] for entry in record["log"]} >= {"opened", "held", "raised"}
        assert 0 < len(record["points"]) <= outage_record.MOST_POINTS

    def test_no_cell_of_the_csv_is_a_formula(self, client, leo, told):
        ramp.write_note(told.pk, person=leo, text='=HYPERLINK("http://x")', clock=DATABASE_CLOCK)
        client.force_login(leo)

        answer = client.get(reverse("outage_csv", args=[told.pk]))

        rows = list(csv.DictReader(io.StringIO(answer.content.decode("utf-8-sig"))))
        assert '\'=HYPERLINK("http://x")' in [row["reason"] for row in rows]
        assert not any(cell.lstrip().startswith(("=", "+", "@")) for row in rows for cell in row.values())
        assert [row["by"] for row in rows if row["kind"] == "raise"] == ["leo"]

    @pytest.mark.parametrize("name", ["outage", "outage_json", "outage_csv"])
    def test_who_may_not_see_the_board_sees_no_record(self, client, xavier, outage, name):
        client.force_login(xavier)

        assert client.get(reverse(name, args=[outage.pk])).status_code == 404


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@sum", "\tx", " =1+1", "\N{FULLWIDTH EQUALS SIGN}1"])
def test_a_text_that_a_spreadsheet_would_run_begins_with_an_apostrophe(text):
    assert safe_cell(text) == f"'{text}"
    assert safe_cell(-1) == -1
    assert safe_cell("a=1") == "a=1"

"""Once per episode: begun, acknowledged by name, over; told to each receiver once."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.contrib.auth.models import Group
from django.core import mail
from django.db import IntegrityError, transaction

from queue_core import alerts, hold, ramp, roles
from queue_core.errors import NotPermitted
from queue_core.models import (
    AlertEpisode,
    AlertHook,
    AlertNotice,
    AlertSubscription,
    AlertWatch,
    AuditEntry,
    LaneRole,
    ModelConnection,
    Outage,
    Presence,
)
from queue_core.states import HoldReason
from tests.factories import at, clock, make_lane, waiting_job
from tests.ramp.stories import again, answer, judged, probing, raise_, soaked

pytestmark = pytest.mark.django_db


def watch(when: float) -> bool:
    Presence.objects.update_or_create(
        kind="scheduler", name="scheduler", defaults={"started_at": at(0), "seen_at": at(when)}
    )
    return alerts.watch(clock=clock(when))


def episodes(kind: str) -> list[AlertEpisode]:
    return list(AlertEpisode.objects.filter(kind=kind).order_by("pk"))


def an_episode(when: float = 100) -> AlertEpisode:
    return AlertEpisode.objects.create(kind="growing", subject="lane 1", begun_at=at(when), seen_at=at(when))


def a_hook(**fields) -> AlertHook:
    return AlertHook.objects.create(
        **({"name": "chat", "address": "https://hooks.example.org/in", "secret_env": "CHAT_SECRET"} | fields)
    )


def test_ten_minutes_of_waiting_for_a_lead_are_one_alert_one_mail_and_one_audit_row(lead):
    """RMP-05: judged every 10 s, told once."""
    lane = soaked(lead)

    for when in range(70, 670, 10):
        judged(lane, when=when)
        assert watch(when)
        alerts.send_due(clock=clock(when))

    [episode] = episodes("soak_met")
    assert (episode.begun_at, episode.seen_at, episode.over_at) == (at(70), at(660), None)
    assert AuditEntry.objects.filter(act="alert.begun", subject_id=str(episode.pk)).count() == 1
    assert [message.subject for message in mail.outbox] == [f"[Reviewboard] {lane}: a stage has run its time"]

    assert raise_(lane, lead, when=670, override_reason="nothing came in").outcome == "raised"
    watch(671)
    alerts.send_due(clock=clock(671))

    [episode] = episodes("soak_met")
    assert episode.over_at == at(671)
    assert [message.subject for message in mail.outbox[1:]] == [f"[Reviewboard] {lane}: over: a stage has run its time"]


def test_an_outage_with_several_holds_and_probes_is_told_once(lead):
    """Once per outage one banner and one notification."""
    lane = probing(lead)
    for start in (100, 200, 300):
        hold.automatic(again(lane), run_id=again(lane).run_id, reason=HoldReason.AUTO_UNAVAILABLE, now=at(start))
        watch(start + 5)
        raise_(lane, lead, when=start + 50)
        watch(start + 55)

    [episode] = episodes("automatic_hold")
    assert (episode.subject, episode.over_at) == (f"outage {Outage.objects.get().pk}", None)
    assert episode.notices.count() == 1

    lane = steady(lane, lead, when=400)
    ramp.close_outage(Outage.objects.get().pk, person=lead, reason="it runs", clock=clock(600))
    watch(601)

    [episode] = episodes("automatic_hold")
    assert episode.over_at == at(601)
    assert sorted(episode.notices.values_list("phase", flat=True)) == ["begun", "over"]


def steady(lane, lead, *, when):
    for step in (0, 80):
        for _number in range(3):
            answer(lane, when=when + step)
        raise_(lane, lead, when=when + step + 70)
    assert again(lane).run.is_last
    return again(lane)


def test_what_comes_and_goes_within_a_minute_is_one_episode():
    lane = make_lane(wait_target=timedelta(minutes=15))
    waiting_job(lane, added=0, deadline=90_000)
    watch(1000)
    lane.wait_target = timedelta(hours=1)
    lane.save()
    watch(1059)
    lane.wait_target = timedelta(minutes=15)
    lane.save()
    watch(1062)

    assert [(one.begun_at, one.seen_at, one.over_at) for one in episodes("ready_late")] == [(at(1000), at(1062), None)]


def test_a_model_that_comes_and_goes_is_told_once_and_is_no_news_once_a_lead_starts(lead):
    """RMP-05: health that flaps is no flood."""
    lane = probing(lead)
    hold.automatic(again(lane), run_id=again(lane).run_id, reason=HoldReason.AUTO_UNAVAILABLE, now=at(30))
    for since in range(100, 700, 100):
        look_at_model(lane, is_good=True, when=since + 65, since=since)
        look_at_model(lane, is_good=False, when=since + 90, since=since + 90)

    [episode] = episodes("model_back")
    assert (episode.begun_at, episode.over_at, episode.notices.count()) == (at(165), None, 1)

    look_at_model(lane, is_good=True, when=765, since=700)
    assert raise_(lane, lead, when=770).outcome == "raised"
    watch(771)

    [episode] = episodes("model_back")
    assert episode.over_at == at(771)


def look_at_model(lane, *, is_good, when, since):
    ModelConnection.objects.filter(pk=lane.connection_id).update(
        health_is_good=is_good, health_since=at(since), health_checked_at=at(when)
    )
    watch(when)


def test_what_was_not_seen_for_a_minute_is_over_and_begins_anew():
    lane = make_lane(wait_target=timedelta(minutes=15))
    waiting_job(lane, added=0, deadline=90_000)
    watch(1000)
    type(lane).objects.filter(pk=lane.pk).update(wait_target=timedelta(hours=1))
    watch(1060)
    watch(4000)

    assert [(one.begun_at, one.over_at) for one in episodes("ready_late")] == [(at(1000), at(1060)), (at(4000), None)]


def test_a_lane_that_is_put_on_hold_grows_no_more_from_that_moment(lead):
    lane = make_lane()
    for number in range(30):
        waiting_job(lane, added=900 + number, deadline=90_000)
    watch(1000)
    assert episodes("growing")[0].over_at is None

    hold.pull(lane.pk, person=lead, form="hold", reason="precaution", clock=clock(1001))
    watch(1002)

    assert episodes("growing")[0].over_at == at(1002)


def test_figures_that_could_not_be_read_end_nothing():
    lane = make_lane(wait_target=timedelta(minutes=15))
    waiting_job(lane, added=0, deadline=90_000)
    watch(1000)
    reading = alerts.Reading((), unknown=frozenset({("ready_late", lane.pk)}))

    AlertWatch.objects.update(watched_at=at(5000))
    assert alerts.apply(reading, turn=at(5000), now=at(5000))

    assert episodes("ready_late")[0].over_at is None


def test_a_watcher_that_was_overtaken_writes_nothing():
    make_lane()
    watch(1000)
    slow = alerts.Reading((alerts.Condition("growing", "lane 1"),))
    AlertWatch.objects.update(watched_at=at(1010))

    assert not alerts.apply(slow, turn=at(1005), now=at(1005))
    assert episodes("growing") == []


def test_watchers_take_turns():
    """CEL-11: two schedulers, and every web process, take one look in five seconds."""
    make_lane()
    assert alerts.watch_if_due(clock=clock(1000))

    assert not alerts.watch_if_due(clock=clock(1004))
    assert not alerts.watch_if_late(clock=clock(1019))
    assert alerts.watch_if_due(clock=clock(1005))
    assert alerts.watch_if_late(clock=clock(1025))


def test_it_is_acknowledged_by_name_once(lead, reviewer):
    episode = an_episode()

    first = alerts.acknowledge(episode.pk, person=reviewer, clock=clock(110))
    second = alerts.acknowledge(episode.pk, person=lead, clock=clock(111))

    assert (first.outcome, second.outcome) == ("acknowledged", "already")
    assert (second.episode.acknowledged_by, second.episode.acknowledged_at) == (reviewer, at(110))
    assert AuditEntry.objects.get(act="alert.acknowledged").actor == reviewer


def test_what_is_over_needs_nobody(reviewer):
    episode = an_episode()
    AlertEpisode.objects.update(over_at=at(105))

    assert alerts.acknowledge(episode.pk, person=reviewer, clock=clock(110)).outcome == "over"


def test_whoever_may_only_look_acknowledges_nothing(person):
    with pytest.raises(NotPermitted):
        alerts.acknowledge(an_episode().pk, person=person(roles.VIEWER), clock=clock(110))


@pytest.mark.parametrize(
    ("table", "change"),
    [
        ("alertepisode", "subject = 'lane 2'"),
        ("alertepisode", "over_at = over_at + interval '1 s'"),
        ("alertepisode", "acknowledged_by_id = NULL, acknowledged_at = NULL"),
        ("alertnotice", "sent_at = NULL"),
        ("alertnotice", "fault = 'never'"),
    ],
)
def test_the_database_keeps_what_was_written_once(lead, table, change):
    from django.db import connection

    episode = an_episode()
    alerts.acknowledge(episode.pk, person=lead, clock=clock(101))
    AlertEpisode.objects.update(over_at=at(105))
    AlertNotice.objects.create(
        episode=episode, phase="begun", channel="mail", person=lead, key=uuid4(), due_at=at(100), sent_at=at(101)
    )

    with pytest.raises(IntegrityError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"UPDATE queue_core_{table} SET {change}")
    with pytest.raises(IntegrityError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"DELETE FROM queue_core_{table}")


class TestWhoIsTold:
    def people(self, kind: str, *lanes: int) -> tuple[int, ...]:
        return alerts.receivers_of(kind, lanes).people

    def test_leads_hear_of_everything_and_reviewers_of_nothing_unless_they_choose(self, lead, reviewer):
        assert self.people("growing", 1) == (lead.pk,)

    def test_a_lead_of_one_lane_hears_of_that_lane_and_not_of_others(self, lead, reviewer):
        lane, other = make_lane(), make_lane()
        LaneRole.objects.create(person=reviewer, role=Group.objects.get(name=roles.LEAD), lane=lane)

        assert self.people("growing", lane.pk) == tuple(sorted((lead.pk, reviewer.pk)))
        assert self.people("growing", other.pk) == self.people("scheduler_dead") == (lead.pk,)

    def test_whoever_chose_gets_what_they_chose_and_no_more(self, lead, reviewer):
        lane, other = make_lane(), make_lane()
        AlertSubscription.objects.create(person=reviewer, lane=lane, kinds=["severe_waiting"])
        AlertSubscription.objects.create(person=lead, kinds=["scheduler_dead"])

        assert self.people("severe_waiting", lane.pk) == (reviewer.pk,)
        assert self.people("severe_waiting", other.pk) == ()
        assert self.people("scheduler_dead") == (lead.pk,)

    @pytest.mark.parametrize("lost", [{"email": ""}, {"is_active": False}])
    def test_nobody_without_an_address_or_an_account(self, lead, lost):
        type(lead).objects.filter(pk=lead.pk).update(**lost)

        assert self.people("growing", 1) == ()

    def test_nobody_who_may_not_see_the_board_any_more(self, reviewer):
        AlertSubscription.objects.create(person=reviewer, kinds=["growing"])
        reviewer.groups.clear()

        assert self.people("growing", 1) == ()

    def test_nobody_where_the_site_sends_no_mail(self, lead, settings):
        settings.QUEUE_CORE_ALERT_MAIL = ""

        assert self.people("growing", 1) == ()

    def test_webhooks_by_lane_kind_and_whether_they_are_on(self):
        lane, other = make_lane(), make_lane()
        everything = a_hook()
        mine = a_hook(name="mine", lane=lane, kinds=["growing"])
        a_hook(name="off", is_enabled=False)

        assert alerts.receivers_of("growing", [lane.pk]).hooks == (everything.pk, mine.pk)
        assert alerts.receivers_of("growing", [other.pk]).hooks == (everything.pk,)
        assert alerts.receivers_of("passing", [lane.pk]).hooks == (everything.pk,)

"""The pages of bulk acts: from a list to a preview, from there to an act, and what became of each job."""

import pytest
from django.contrib.auth.models import Group
from django.urls import reverse

from queue_core import bulk, people, roles
from queue_core.bulk import Terms
from queue_core.clock import DATABASE_CLOCK
from queue_core.models import AuditEntry, BulkAct, BulkEntry, Item, Job, LaneRole
from queue_core.states import BulkKind
from reviewboard.models import Person
from tests.bulk.acts import HOUR, lola
from tests.desk.backlog import dead_now, make_live_lane, waiting_now
from tests.people.cast import item_of, person, rita

pytestmark = pytest.mark.django_db


@pytest.fixture
def lead(client):
    who = lola()
    client.force_login(who)
    return who


def ask(client, kind, source, *, rows=(), query="", **more):
    sent = {"kind": kind, "from": source, "row": [one.pk for one in rows], "filter": query, **more}
    return client.post(reverse("bulk_preview"), sent)


def confirm(client, act, **more):
    sent = {"reason": "the model is back", "first": "4h", "span": "2h"} | more
    return client.post(reverse("bulk_confirm", args=[act.pk]), sent)


def page(client, act, query=""):
    return client.get(reverse("bulk_act", args=[act.pk]) + query).content.decode()


def test_ticked_items_of_the_desk_are_previewed_confirmed_carried_out_and_told(client, lead):
    lane = make_live_lane()
    ticked = [dead_now(lane, severity=2), dead_now(lane)]
    other = dead_now(lane)
    desk = client.get(reverse("desk")).content.decode()
    assert 'name="row"' in desk
    assert "Preview the ticked ones" in desk

    answer = ask(client, "requeue", "desk", rows=[item_of(job) for job in ticked])
    act = BulkAct.objects.get()
    assert answer.url == reverse("bulk_act", args=[act.pk])
    preview = page(client, act)
    assert "2 DEAD jobs go back to the machine" in preview
    assert "The forecast with these jobs back in the lane" in preview

    assert confirm(client, act).status_code == 302
    assert "No worker has started this yet" in page(client, act)
    bulk.work(act.pk, clock=DATABASE_CLOCK)

    done = page(client, act)
    assert "2 of 2 had their turn; 2 were done." in done
    assert 'data-live="' not in done, "an act that is over is not polled (HTX-05)"
    other.refresh_from_db()
    assert other.state == "DEAD"
    assert ticked[0].ticket.external_id in page(client, act, "?outcome=done")
    assert "None for this filter" in page(client, act, "?outcome=failed")


def test_all_of_a_filter_means_the_filter_and_nothing_beyond(client, lead):
    """ADM-04: "all" is all that this filter finds."""
    lane, elsewhere = make_live_lane(), make_live_lane()
    for each in (lane, lane, elsewhere):
        waiting_now(each, left=900)
        dead_now(each)

    ask(client, "move_deadlines", "jobs", query=f"lane={lane.name}&state=WAITING", all="1")

    act = BulkAct.objects.get()
    assert set(act.entries.values_list("job__lane_id", "job__state")) == {(lane.pk, "WAITING")}
    assert act.entries.count() == 2
    assert "2 WAITING jobs get later service deadlines." in page(client, act)


@pytest.mark.parametrize(
    ("source", "query"),
    [("jobs", "lane=renamed"), ("jobs", "state=NEW"), ("desk", "lane=renamed"), ("desk", "cause=deadline")],
)
def test_all_of_a_filter_of_which_a_part_is_gone_is_nothing_and_not_the_rest_adm_04(client, lead, source, query):
    dead = dead_now(make_live_lane())

    ask(client, "requeue", source, query=query, all="1")
    assert not BulkAct.objects.exists()

    ask(client, "requeue", source, query=query, rows=[dead if source == "jobs" else item_of(dead)])
    assert BulkAct.objects.exists(), "what was ticked, was ticked"


def test_nothing_ticked_and_nothing_fitting_are_said(client, lead):
    lane = make_live_lane()
    waiting_now(lane, left=900)

    told = ask(client, "pull", "jobs"), ask(client, "requeue", "jobs", rows=Job.objects.all())

    assert [answer.url for answer in told] == [reverse("jobs")] * 2
    text = client.get(reverse("jobs")).content.decode()
    assert "Tick the rows first" in text
    assert "Nothing of this can be handled so." in text
    assert not BulkAct.objects.exists()


def test_a_mistake_keeps_what_was_typed_and_changes_nothing(client, lead):
    ask(client, "requeue", "desk", rows=[item_of(dead_now(make_live_lane()))])
    act = BulkAct.objects.get()

    answer = confirm(client, act, reason="")

    assert (answer.status_code, BulkAct.objects.get().confirmed_at) == (422, None)
    assert client.post(reverse("bulk_discard", args=[act.pk])).url == reverse("desk")
    assert not BulkEntry.objects.exists()


def test_a_stop_is_one_click_and_the_rest_says_so(client, lead):
    lane = make_live_lane()
    ask(client, "requeue", "desk", rows=[item_of(dead_now(lane)) for _ in range(2)])
    act = BulkAct.objects.get()
    confirm(client, act)

    client.post(reverse("bulk_stop", args=[act.pk]))

    assert "stopped before its turn" in page(client, act)
    assert not Job.objects.filter(state="WAITING").exists()


def test_who_may_not_make_an_act_sees_neither_it_nor_its_kind(client, lead):
    job = dead_now(make_live_lane())
    ask(client, "requeue", "desk", rows=[item_of(job)])
    act = BulkAct.objects.get()
    client.force_login(rita())

    assert client.get(reverse("bulk_act", args=[act.pk])).status_code == 404, "somebody else's preview"
    assert ask(client, "requeue", "desk", rows=[item_of(job)]).status_code == 404
    assert ask(client, "approve", "desk", rows=[item_of(job)]).status_code == 404
    client.force_login(person("vera", "view_board"))
    assert client.get(reverse("bulk_acts")).status_code == 404
    assert 'name="row"' not in client.get(reverse("jobs")).content.decode()


def test_the_file_names_each_outcome_and_runs_no_formula(client, lead):
    """EXP-01."""
    job = dead_now(make_live_lane(), external_id="=cmd|' /C calc'!A0")
    ask(client, "requeue", "desk", rows=[item_of(job)])
    act = BulkAct.objects.get()
    confirm(client, act)
    bulk.work(act.pk, clock=DATABASE_CLOCK)

    file = b"".join(client.get(reverse("bulk_entries", args=[act.pk])).streaming_content)

    assert file.startswith(b"\xef\xbb\xbf"), "by which Excel knows UTF-8"
    lines = file.decode("utf-8-sig").splitlines()
    assert lines[0] == "place,source,ticket,job,item,severity,outcome,fault,at"
    assert "'=cmd|' /C calc'!A0" in lines[1]
    assert ",done," in lines[1]
    assert len(lines) == 2


def test_the_list_shows_acts_newest_first_with_how_they_stand(client, lead):
    lane = make_live_lane()
    assert "No bulk act yet" in client.get(reverse("bulk_acts")).content.decode()
    ask(client, "requeue", "desk", rows=[item_of(dead_now(lane))])
    confirm(client, BulkAct.objects.get())
    bulk.work(BulkAct.objects.get().pk, clock=DATABASE_CLOCK)
    ask(client, "escalate", "desk", rows=[item_of(dead_now(lane))])

    text = client.get(reverse("bulk_acts")).content.decode()

    assert text.index("escalate") < text.index("the model is back")
    assert "previewed, not confirmed" in text
    assert not Item.objects.filter(for_leads=True).exists()


def confirmed_now(who):
    shown = bulk.preview(BulkKind.REQUEUE, Job.objects.all(), selection={}, person=who, clock=DATABASE_CLOCK).act
    terms = Terms(first=HOUR)
    return bulk.confirm(shown.pk, terms=terms, reason="zebra is back", person=who, clock=DATABASE_CLOCK).act


def test_an_act_is_there_for_who_has_its_rights_on_one_of_its_lanes_and_stopped_by_who_has_them_on_all(client):
    """MOD-10: a right on one lane says nothing about another."""
    mine, theirs, elsewhere = make_live_lane(), make_live_lane(), make_live_lane()
    for lane in (mine, theirs):
        dead_now(lane)
    act = confirmed_now(lola())
    near, far = Person.objects.create_user("near"), Person.objects.create_user("far")
    reviewer = Group.objects.get(name=roles.REVIEWER)
    LaneRole.objects.create(person=near, role=reviewer, lane=mine)
    LaneRole.objects.create(person=far, role=reviewer, lane=elsewhere)

    client.force_login(far)
    assert [client.get(reverse(name, args=[act.pk])).status_code for name in ("bulk_act", "bulk_entries")] == [404, 404]
    assert client.post(reverse("bulk_stop", args=[act.pk])).status_code == 404
    assert act.reason not in client.get(reverse("bulk_acts")).content.decode()
    client.force_login(near)
    seen = client.get(reverse("bulk_act", args=[act.pk]))
    assert seen.status_code == 200
    assert reverse("bulk_stop", args=[act.pk]) not in seen.content.decode()
    assert client.post(reverse("bulk_stop", args=[act.pk])).status_code == 404
    LaneRole.objects.create(person=near, role=reviewer, lane=theirs)
    assert client.post(reverse("bulk_stop", args=[act.pk])).status_code == 302
    act.refresh_from_db()
    assert act.stopped_by == near


def test_what_one_may_not_act_on_is_left_out_and_said_and_what_one_does_not_see_is_on_record(client):
    """MOD-10: five of one's own and others' by hand."""
    mine, seen, unseen = make_live_lane(), make_live_lane(), make_live_lane()
    own, shown, foreign, gone = (item_of(dead_now(lane)) for lane in (mine, seen, unseen, mine))
    near = Person.objects.create_user("near")
    for role, lane in ((roles.LEAD, mine), (roles.VIEWER, seen)):
        LaneRole.objects.create(person=near, role=Group.objects.get(name=role), lane=lane)
    who = lola()
    token = people.take(gone.pk, person=who, clock=DATABASE_CLOCK).token
    people.resolve(token, person=who, verdict="APPROVED", clock=DATABASE_CLOCK)
    client.force_login(near)

    ask(client, "requeue", "desk", rows=[own, shown, foreign, gone, own])

    act = BulkAct.objects.get()
    assert [entry.item_id for entry in act.entries.all()] == [own.pk]
    told = page(client, act)
    assert "1 is left out: on its lane you may not do this." in told
    assert "2 are left out: it is not at the desk, or not there any more." in told
    denied = AuditEntry.objects.filter(act="act.denied").values_list("actor_name", "subject_id", "lane", "after")
    assert list(denied) == [("near", str(foreign.pk), unseen.pk, {"right": "requeue_item"})]
    assert foreign.ticket.external_id not in told

"""A group of the desk requeued: its one line, and the bulk act that its button previews."""

import re

import pytest
from django.urls import reverse

from queue_core import bulk, people
from queue_core.clock import DATABASE_CLOCK
from queue_core.contract.erase import erase
from queue_core.models import BulkAct, Job
from queue_core.states import BulkOutcome
from tests.bulk.acts import lola, outcomes, preview
from tests.desk.backlog import dead_now, make_live_lane
from tests.factories import at, clock, dead_job, make_lane, waiting_job
from tests.people.cast import item_of, manual_item, person, rita, take

pytestmark = pytest.mark.django_db


def test_groups_are_one_line_a_lane_and_cause_and_say_what_is_whose():
    lane, who = make_lane(), rita()
    for _ in range(3):
        dead_job(lane)
    dead_job(lane, is_restricted=True)
    take(item_of(dead_job(lane)), who, when=20)
    manual_item(lane, severity=2)
    waiting_job(lane)

    first, second = people.groups(person=who, now=at(30))

    assert (first.kind, first.count, first.for_you, first.requeueable, first.worst) == ("manual", 1, 1, 0, 2)
    assert (second.kind, second.cause) == ("dead", "deadline")
    assert (second.count, second.for_you, second.requeueable) == (5, 4, 3)


def test_what_cannot_go_back_to_the_machine_is_left_out_of_the_preview_and_said():
    lane, who = make_lane(), lola()
    plain, _restricted, taken, erased, was_decided = (dead_job(lane, is_restricted=n == 1) for n in range(5))
    take(item_of(taken), who, when=11)
    erase(erased.ticket_id, ground="asked", actor=None, clock=clock(12))
    token = take(item_of(was_decided), who, when=12)
    decision = people.resolve(token, person=who, verdict="APPROVED", clock=clock(13)).decision
    token = people.take_back(decision.pk, person=who, clock=clock(14)).token
    people.give_back(token, person=who, clock=clock(15))

    shown = preview("requeue", who, when=20)

    assert shown.left_out == {"restricted": 1, "taken": 1, "erased": 1, "was_decided": 1}
    assert [entry.job_id for entry in shown.act.entries.all()] == [plain.pk]


def test_the_groups_button_previews_the_group_and_nothing_beyond_it(client):
    """ADM-04. Without JavaScript: a form on the desk, a page with the forecast, one reason, progress."""
    lane, other, who = make_live_lane(), make_live_lane(), lola()
    jobs = [dead_now(lane) for _ in range(2)]
    dead_now(other)
    client.force_login(who)
    desk = client.get(reverse("desk")).content.decode()
    form = re.search(r'<form method="post" action="/bulk/preview/">.*?</form>', desk, re.DOTALL)[0]
    sent = dict(re.findall(r'name="(from|kind|filter|all)" value="([^"]*)"', form.replace("&amp;", "&")))

    shown = client.post(reverse("bulk_preview"), sent, follow=True).content.decode()
    act = BulkAct.objects.get()
    assert "2 DEAD jobs go back to the machine" in shown
    assert "The forecast with these jobs back in the lane" in shown
    client.post(reverse("bulk_confirm", args=[act.pk]), {"reason": "it is back", "first": "4h", "span": "2h"})
    bulk.work(act.pk, clock=DATABASE_CLOCK)

    assert set(outcomes(act)) == {job.pk for job in jobs}
    assert set(outcomes(act).values()) == {BulkOutcome.DONE}
    assert Job.objects.filter(lane=other, state="DEAD").count() == 1


@pytest.mark.parametrize("right", ["decide_item", "requeue_item"])
def test_the_button_stands_there_for_who_may_requeue(client, right):
    lane = make_live_lane()
    for _ in range(2):
        dead_now(lane)
    client.force_login(person("olga", "view_board", right))

    assert ("Requeue group" in client.get(reverse("desk")).content.decode()) == (right == "requeue_item")

"""Stored answers judged by another version, and what it proposes for items that wait for people."""

import json
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from queue_core import contract, people, ramp, roles
from queue_core.clock import DATABASE_CLOCK
from queue_core.contract import Ending
from queue_core.errors import InvalidRequest
from queue_core.models import Decision, Item, Job, Lane, Policy
from queue_core.policy import Policy as Rules
from queue_core.usage import usage_of_runs
from queue_core.what_if import proposal_for, proposals, what_if
from reviewboard.model_server import RunningServer
from reviewboard.models import Person
from tests.connections.wires import QUESTIONS, row
from tests.desk.backlog import make_live_lane, now, waiting_now
from tests.factories import T0

pytestmark = pytest.mark.django_db

STRICTER = [{"category": "offensive", "reject_at": 0.6, "approve_below": 0.4, "reason_code": "insult"}]


def person(name: str, role: str) -> Person:
    made = Person.objects.create_user(name)
    roles.assign(made, role)
    return made


def answered(lane: Lane, score: float, result: str, **fields: Any) -> Job:
    """A job of the lane that the model ended, with this score stored."""
    job = waiting_now(lane)
    lane.judged_at = now()
    lane.save(update_fields=["judged_at"])
    token = contract.claim(job.pk, clock=DATABASE_CLOCK, worker="w1").token
    assert token is not None
    ending = Ending(
        result=result,
        reason_code="insult" if result == "REJECTED" else None,
        cause="grey_zone" if result == "MANUAL" else "all_below",
        scores={"offensive": score},
        **fields,
    )
    assert contract.complete(token, ending, clock=DATABASE_CLOCK) == "committed"
    return Job.objects.get(pk=job.pk)


def version(lane: Lane, rules: list[dict[str, Any]], number: int = 3, **fields: Any) -> Policy:
    return Policy.objects.create(lane=lane, version=number, rules=rules, made_at=T0, **fields)


def test_what_if_counts_what_each_answer_got_and_would_get() -> None:
    lane = make_live_lane()
    answered(lane, 0.1, "APPROVED")
    grey = answered(lane, 0.7, "MANUAL")
    answered(lane, 0.9, "REJECTED")

    found = what_if(lane, Rules.from_rules(STRICTER))

    assert (found.looked_at, found.changed) == (3, 1)
    first = found.changes[0]
    assert (first.was, first.would, first.count, first.jobs) == ("MANUAL", "REJECTED", 1, (grey.pk,))
    assert not Decision.objects.filter(job=grey).exists()


def test_what_if_looks_at_the_last_answers_alone_and_writes_nothing() -> None:
    lane = make_live_lane()
    for score in (0.9, 0.1, 0.1):
        answered(lane, score, "REJECTED" if score > 0.5 else "APPROVED")

    found = what_if(lane, Rules.from_rules(STRICTER), last=2)

    assert found.looked_at == 2
    assert [(change.was, change.would) for change in found.changes] == [("APPROVED", "APPROVED")]


def test_what_if_says_how_many_answers_lack_a_score_that_it_needs() -> None:
    lane = make_live_lane()
    answered(lane, 0.1, "APPROVED")

    found = what_if(lane, Rules.from_rules([STRICTER[0] | {"category": "threat"}]))

    assert found.causes == (("missing_score", 1),)


def test_what_if_tells_how_often_it_is_of_one_mind_with_people() -> None:
    lane, rita = make_live_lane(), person("rita", roles.REVIEWER)
    for verdict in ("REJECTED", "APPROVED"):
        job = answered(lane, 0.7, "MANUAL")
        taken = people.take(Item.objects.get(job=job).pk, person=rita, clock=DATABASE_CLOCK)
        code = "insult" if verdict == "REJECTED" else None
        people.resolve(taken.token, person=rita, verdict=verdict, reason_code=code, clock=DATABASE_CLOCK)

    found = what_if(lane, Rules.from_rules(STRICTER))

    assert (found.decided, found.agreed) == (2, 1)


def test_a_newer_version_in_force_proposes_and_only_a_person_decides() -> None:
    lane, rita = make_live_lane(), person("rita", roles.REVIEWER)
    item = Item.objects.get(job=answered(lane, 0.7, "MANUAL"))
    still_grey = Item.objects.get(job=answered(lane, 0.5, "MANUAL"))
    assert proposals(lane) == []
    lane.policy = version(lane, STRICTER)
    lane.save()

    [proposal] = proposals(lane)

    assert (proposal.item, proposal.verdict, proposal.ruling.reason_code) == (item.pk, "REJECTED", "insult")
    assert proposal_for(Item.objects.get(pk=still_grey.pk)) is None
    assert not Decision.objects.exists()
    taken = people.take(item.pk, person=rita, clock=DATABASE_CLOCK)
    people.resolve(taken.token, person=rita, verdict="APPROVED", clock=DATABASE_CLOCK)
    assert Decision.objects.get().verdict == "APPROVED"
    assert proposals(lane) == []


def test_the_item_page_shows_the_proposal_filled_in_for_its_holder(client: Client) -> None:
    lane, rita = make_live_lane(), person("rita", roles.REVIEWER)
    item = Item.objects.get(job=answered(lane, 0.7, "MANUAL"))
    lane.policy = version(lane, STRICTER)
    lane.save()
    people.take(item.pk, person=rita, clock=DATABASE_CLOCK)
    client.force_login(rita)

    shown = client.get(reverse("item", args=[item.pk])).content.decode()

    assert "Version 3 of the policy would reject it (insult). You decide." in shown
    assert 'value="REJECTED" required data-key="r" checked' in shown


@pytest.mark.parametrize("two_persons", [True, False])
def test_whoever_made_a_version_does_not_force_it_where_the_lane_asks_for_two(two_persons: bool) -> None:
    lane, lea, leo = make_live_lane(two_person_rule=two_persons), person("lea", roles.LEAD), person("leo", roles.LEAD)
    made = version(lane, STRICTER, made_by=lea)

    acted = ramp.force_policy(lane.pk, made.pk, person=lea, reason="too mild", clock=DATABASE_CLOCK)

    assert acted.outcome == ("made_by_the_same" if two_persons else "done")
    if two_persons:
        assert Lane.objects.get(pk=lane.pk).policy_id == lane.policy_id
        acted = ramp.force_policy(lane.pk, made.pk, person=leo, reason="too mild", clock=DATABASE_CLOCK)
        assert acted.outcome == "done"


def test_a_version_that_the_lanes_model_cannot_answer_is_not_put_into_force() -> None:
    connection = row("systemone", "http://127.0.0.1:9")
    connection.save()
    lane, lea = make_live_lane(connection=connection), person("lea", roles.LEAD)
    made = version(lane, STRICTER, questions=QUESTIONS)

    with pytest.raises(InvalidRequest, match="No answer brings a score"):
        ramp.force_policy(lane.pk, made.pk, person=lea, reason="too mild", clock=DATABASE_CLOCK)


def test_a_changed_policy_rewrites_no_decided_ticket() -> None:
    lane, lea = make_live_lane(), person("lea", roles.LEAD)
    job = answered(lane, 0.7, "APPROVED")
    before = list(Decision.objects.values())

    ramp.force_policy(lane.pk, version(lane, STRICTER).pk, person=lea, reason="too mild", clock=DATABASE_CLOCK)

    assert list(Decision.objects.values()) == before
    assert Job.objects.get(pk=job.pk).result == "APPROVED"


def test_usage_is_summed_for_a_run() -> None:
    lane = make_live_lane()
    assert lane.run is not None
    run = lane.run
    answered(lane, 0.1, "APPROVED", usage={"input_tokens": 100, "output_tokens": 7, "total_tokens": 107})
    answered(lane, 0.1, "APPROVED", usage={"input_tokens": 50, "output_tokens": 3, "note": "no count"})

    found = usage_of_runs([run.pk])

    assert found is not None
    usage = found[run.pk]
    assert usage.counts == {"input_tokens": 150, "output_tokens": 10, "total_tokens": 107}
    assert (usage.calls, usage.total) == (2, 107)


# --- Pages ----------------------------------------------------------------------------------------------------------


def policy_url(lane: Lane, number: int, name: str = "policy") -> str:
    return reverse(name, args=[lane.name, number])


def test_the_page_of_a_version_says_what_it_would_have_done(client: Client) -> None:
    lane = make_live_lane()
    answered(lane, 0.7, "MANUAL")
    version(lane, STRICTER)
    client.force_login(person("vera", roles.VIEWER))

    shown = client.get(policy_url(lane, 3)).content.decode()

    assert "Of the last 1 answer 1 would end otherwise." in shown
    assert "Try it" not in shown
    assert client.get(policy_url(lane, 3), {"last": "many"}).status_code == 200
    assert client.get(policy_url(lane, 9)).status_code == 404


def test_a_text_is_tried_on_a_version_and_nothing_of_it_is_kept(client: Client, model: RunningServer) -> None:
    connection = row("systemone", model.url)
    connection.save()
    lane = make_live_lane(connection=connection)
    rules = [{"category": "insult", "reject_at": 0.8, "approve_below": 0.3, "reason_code": "insult"}]
    version(lane, rules, questions=QUESTIONS)
    client.force_login(person("lea", roles.LEAD))

    answer = client.post(policy_url(lane, 3, "policy_try"), {"text": "[[p=0.91]] you"})
    model.set("unauthorized")
    held = client.post(policy_url(lane, 3, "policy_try"), {"text": "hello"})

    shown = answer.content.decode()
    assert "<strong>REJECTED</strong>" in shown
    assert " 0.91</span>" in shown
    assert "does not accept the key" in held.content.decode()
    assert not Job.objects.exists()
    assert client.post(policy_url(lane, 3, "policy_try"), {"text": ""}).status_code == 422


def test_a_viewer_tries_no_text(client: Client) -> None:
    lane = make_live_lane()
    client.force_login(person("vera", roles.VIEWER))

    assert client.post(policy_url(lane, 2, "policy_try"), {"text": "hello"}).status_code == 404


def test_the_admins_form_checks_questions_and_rules_and_tries_a_text(client: Client, model: RunningServer) -> None:
    connection = row("openai-decisions", model.url)
    connection.save()
    lane = make_live_lane(connection=connection)
    ada = person("ada", roles.ADMINISTRATOR)
    Person.objects.filter(pk=ada.pk).update(is_staff=True)
    client.force_login(ada)
    url = reverse("admin:queue_core_policy_add")
    rules = [{"category": "verdict=reject", "reject_at": 0.8, "approve_below": 0.3, "reason_code": "insult"}]
    sent = {"lane": lane.pk, "rules": json.dumps(rules), "questions": json.dumps(QUESTIONS), "note": ""}

    misfit = client.post(url, sent | {"questions": "[]"})
    tried = client.post(url, sent | {"_try": "1", "trial_text": "you idiot"})
    empty = client.post(url, sent | {"_try": "1", "trial_text": ""})
    made = client.post(url, sent)

    assert "at least one question is needed" in misfit.content.decode()
    assert "<strong>REJECTED</strong>" in tried.content.decode()
    assert "you idiot" in tried.content.decode()
    assert "1 to 20000 characters" in empty.content.decode()
    assert made.status_code == 302
    assert list(Policy.objects.filter(lane=lane).values_list("version", flat=True)) == [3, 2, 1]

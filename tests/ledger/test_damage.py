"""Each kind of damage, done past triggers and foreign keys, is found by the rule that it breaks."""

from collections.abc import Iterator
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from queue_core.ledger import audit, rules
from queue_core.ledger.auditor import confirmed, judged
from tests.factories import made_once
from tests.ledger.damage import damage, found_by
from tests.ledger.kinds import Scene, staged
from tests.ledger.test_damage_of_acts import DAMAGE as DAMAGE_OF_ACTS

pytestmark = pytest.mark.django_db

#: What is done, and the rule that must find it. Names in brackets are keys of the scene.
DAMAGE: list[tuple[str, str]] = [
    ("lane_standing", "UPDATE queue_core_stagerun SET ended_at = now(), ended_as = 'held' WHERE lane_id = %(lane)s"),
    ("lane_standing", "UPDATE queue_core_lane SET cap = cap + 1 WHERE id = %(lane)s"),
    ("lane_standing", "UPDATE queue_core_hold SET ended_at = now() WHERE id = %(hold)s"),
    ("lane_layers", "UPDATE queue_core_lanetotal SET number = number + 1 WHERE code = 'item.manual'"),
    ("ticket_current", "UPDATE queue_core_ticket SET current_revision = 'v9' WHERE id = %(done_ticket)s"),
    ("ticket_current", "DELETE FROM queue_core_job WHERE id = %(waiting)s"),
    ("ticket_sequence", "DELETE FROM queue_core_message WHERE ticket_id = %(done_ticket)s"),
    ("ticket_sequence", "UPDATE queue_core_ticket SET seq = seq + 1 WHERE id = %(done_ticket)s"),
    ("ticket_sequence", "UPDATE queue_core_message SET seq = 7 WHERE ticket_id = %(done_ticket)s"),
    ("ticket_lane", "UPDATE queue_core_ticket SET lane_id = %(other_lane)s WHERE id = %(done_ticket)s"),
    ("ticket_rounds", "UPDATE queue_core_job SET round = 2 WHERE id = %(waiting)s"),
    ("evidence_seal", "UPDATE queue_core_evidence SET body = body || ' ' WHERE ticket_id = %(done_ticket)s"),
    ("evidence_seal", "UPDATE queue_core_evidence SET size = size + 1 WHERE ticket_id = %(done_ticket)s"),
    ("evidence_seal", "UPDATE queue_core_evidence SET erased_at = now() WHERE ticket_id = %(done_ticket)s"),
    ("revision_lost", "DELETE FROM queue_core_job WHERE id = %(waiting)s"),
    ("revision_lost", "DELETE FROM queue_core_item WHERE job_id = %(manual)s"),
    ("revision_lost", "DELETE FROM queue_core_decision WHERE job_id = %(done)s"),
    ("job_identity", "UPDATE queue_core_job SET revision = 'v9' WHERE id = %(waiting)s"),
    ("job_identity", "UPDATE queue_core_ticket SET withdrawn_at = now() WHERE id = %(waiting_ticket)s"),
    ("job_identity", ("UPDATE queue_core_evidence SET ticket_id = %(done_ticket)s, revision = 'v9'"
                     " WHERE ticket_id = %(waiting_ticket)s")),
    ("job_fences", "DELETE FROM queue_core_attempt WHERE job_id = %(requeued)s AND fence = 1"),
    ("job_fences", "UPDATE queue_core_job SET fence = fence + 1 WHERE id = %(waiting)s"),
    ("job_charged", "UPDATE queue_core_attempt SET is_charged = FALSE WHERE job_id = %(leased)s"),
    ("job_charged", "UPDATE queue_core_job SET attempts = 0 WHERE id = %(leased)s"),
    ("job_committed", "UPDATE queue_core_attempt SET is_committed = FALSE WHERE job_id = %(done)s"),
    # In a minute of which the kept figures are summed anew, too: a committed attempt without a result.
    ("job_committed", ("UPDATE queue_core_attempt SET is_committed = TRUE, outcome = 'verdict',"
                      " ended_at = lease_until + interval '1 second' WHERE job_id = %(leased)s")),
    ("job_committed", ("UPDATE queue_core_attempt SET is_committed = TRUE, ended_at = now(), outcome = 'verdict'"
                      " WHERE job_id = %(leased)s")),
    ("job_committed", ("UPDATE queue_core_job SET state = 'DONE', result = 'APPROVED', finished_at = now()"
                      " WHERE id = %(waiting)s")),
    ("job_committed", "UPDATE queue_core_job SET finished_at = finished_at + interval '1 s' WHERE id = %(done)s"),
    ("job_lease", "UPDATE queue_core_attempt SET ended_at = now(), outcome = 'timeout' WHERE job_id = %(leased)s"),
    ("job_lease", "UPDATE queue_core_job SET lease_until = lease_until + interval '1 s' WHERE id = %(leased)s"),
    ("job_lease_end", "UPDATE queue_core_job SET lease_until = lease_until + interval '1 s' WHERE id = %(done)s"),
    ("job_lease_end", "UPDATE queue_core_job SET lease_until = lease_until + interval '1 s' WHERE id = %(requeued)s"),
    ("job_lease_end", "UPDATE queue_core_job SET deadline = lease_until - interval '1 s' WHERE id = %(done)s"),
    ("job_left_open", "UPDATE queue_core_job SET state = 'WAITING' WHERE id = %(leased)s"),
    ("job_left_open", ("UPDATE queue_core_attempt SET ended_at = NULL, outcome = NULL, is_committed = FALSE"
                      " WHERE job_id = %(done)s")),
    ("job_decision", "DELETE FROM queue_core_decision WHERE job_id = %(done)s"),
    ("job_decision", "UPDATE queue_core_job SET result = 'REJECTED' WHERE id = %(done)s"),
    ("job_decision", "UPDATE queue_core_decision SET job_id = %(manual)s WHERE job_id = %(done)s"),
    ("job_handed_over", "DELETE FROM queue_core_item WHERE job_id = %(manual)s"),
    ("job_handed_over", "DELETE FROM queue_core_item WHERE job_id = %(dead)s"),
    ("job_handed_over", "UPDATE queue_core_item SET kind = 'dead' WHERE job_id = %(pulled)s"),
    ("job_handed_over", ("UPDATE queue_core_job SET dead_reason = 'attempts', attempts = 1, fence = 1"
                        " WHERE id = %(dead)s")),
    ("job_died", ("UPDATE queue_core_job SET state = 'DEAD', dead_reason = 'superseded', finished_at = now()"
                 " WHERE id = %(waiting)s")),
    ("job_died", ("UPDATE queue_core_job SET state = 'DEAD', dead_reason = 'withdrawn', finished_at = now()"
                 " WHERE id = %(leased)s")),
    ("job_died", "UPDATE queue_core_job SET deadline = finished_at + interval '1 s' WHERE id = %(dead)s"),
    ("job_died", "UPDATE queue_core_job SET dead_reason = 'attempts' WHERE id = %(dead)s"),
    ("job_pulled", "DELETE FROM queue_core_auditentry WHERE act = 'job.pulled'"),
    ("job_deadline", "UPDATE queue_core_job SET deadline = deadline + interval '1 s' WHERE id = %(requeued)s"),
    ("job_deadline", "UPDATE queue_core_job SET deadline = deadline + interval '1 s' WHERE id = %(manual)s"),
    ("job_requeues", "UPDATE queue_core_job SET requeues = requeues + 1 WHERE id = %(waiting)s"),
    ("job_requeues", "DELETE FROM queue_core_auditentry WHERE act = 'job.requeued'"),
    ("attempt_times", "UPDATE queue_core_attempt SET ended_at = lease_until WHERE job_id = %(done)s"),
    ("attempt_times", "UPDATE queue_core_attempt SET ended_at = started_at - interval '1 s' WHERE job_id = %(done)s"),
    ("attempt_place", "UPDATE queue_core_attempt SET lane_id = %(other_lane)s WHERE job_id = %(done)s"),
    ("attempt_number", "UPDATE queue_core_attempt SET number = 2 WHERE job_id = %(done)s"),
    ("attempt_number", "UPDATE queue_core_attempt SET number = 0 WHERE job_id = %(leased)s"),
    ("decision_chain", "UPDATE queue_core_decision SET replaces_id = id, why = 'correction' WHERE job_id = %(done)s"),
    ("decision_chain", ("UPDATE queue_core_decision SET why = 'correction', replaces_id ="
                       " (SELECT id FROM queue_core_decision WHERE job_id = %(done)s) WHERE job_id = %(decided)s")),
    ("decision_job", "UPDATE queue_core_decision SET revision = 'v9' WHERE job_id = %(done)s"),
    ("decision_attempt", "UPDATE queue_core_decision SET policy_id = NULL WHERE job_id = %(done)s"),
    ("decision_attempt", "UPDATE queue_core_decision SET decided_at = now() WHERE job_id = %(done)s"),
    ("decision_assignment", "UPDATE queue_core_decision SET person_id = %(leo)s WHERE job_id = %(decided)s"),
    ("decision_assignment", "DELETE FROM queue_core_auditentry WHERE act = 'item.decided'"),
    ("decision_assignment", "UPDATE queue_core_item SET closed_as = 'withdrawn' WHERE job_id = %(decided)s"),
    ("decision_message", "DELETE FROM queue_core_message WHERE kind = 'decision' AND ticket_id = %(done_ticket)s"),
    ("decision_message", ("UPDATE queue_core_message SET body = jsonb_set(body, '{verdict}', '\"REJECTED\"')"
                         " WHERE kind = 'decision' AND ticket_id = %(done_ticket)s")),
    ("message_kept_back", "UPDATE queue_core_message SET state = 'kept_back' WHERE ticket_id = %(done_ticket)s"),
    ("message_times", ("UPDATE queue_core_message SET created_at = created_at + interval '1 s'"
                      " WHERE ticket_id = %(done_ticket)s")),
    ("message_times", "UPDATE queue_core_message SET created_at = now() WHERE kind = 'ticket.dead'"),
    ("message_times", "UPDATE queue_core_message SET not_before = now() WHERE ticket_id = %(done_ticket)s"),
    ("message_let_go", "UPDATE queue_core_stagerun SET keeps_back = TRUE WHERE lane_id = %(lane)s"),
    ("message_deliveries", "DELETE FROM queue_core_delivery WHERE id = %(delivery)s"),
    ("delivery_place", "UPDATE queue_core_delivery SET number = number + 1 WHERE id = %(delivery)s"),
    ("delivery_place", "UPDATE queue_core_delivery SET ticket_id = %(waiting_ticket)s WHERE id = %(delivery)s"),
    ("delivery_state", "UPDATE queue_core_deliverytry SET outcome = 'failed' WHERE delivery_id = %(delivery)s"),
    ("delivery_state", "UPDATE queue_core_delivery SET ended_at = now() WHERE id = %(delivery)s"),
    ("deliverytry_times", ("UPDATE queue_core_deliverytry SET ended_at = started_at - interval '1 s'"
                          " WHERE delivery_id = %(delivery)s")),
    ("deliverytry_times", "UPDATE queue_core_deliverytry SET started_at = started_at - interval '1 day'"),
    ("delivery_state", ("UPDATE queue_core_message SET state = 'withdrawn' WHERE id IN (SELECT message_id FROM"
                       " queue_core_delivery WHERE state = 'pending')")),
    ("delivery_tries", "UPDATE queue_core_delivery SET tries = tries + 1 WHERE id = %(delivery)s"),
    ("delivery_tries", "DELETE FROM queue_core_deliverytry WHERE delivery_id = %(delivery)s"),
    ("item_place", "UPDATE queue_core_item SET ticket_id = %(done_ticket)s WHERE job_id = %(manual)s"),
    ("item_needed", "UPDATE queue_core_item SET kind = 'dead' WHERE job_id = %(manual)s"),
    ("item_needed", "UPDATE queue_core_item SET closed_at = NULL, closed_as = NULL WHERE job_id = %(requeued)s"),
    ("item_needed", "UPDATE queue_core_item SET closed_at = NULL, closed_as = NULL WHERE job_id = %(decided)s"),
    ("item_ended", "UPDATE queue_core_item SET closed_as = 'superseded' WHERE job_id = %(decided)s"),
    ("item_ended", "UPDATE queue_core_item SET closed_at = now(), closed_as = 'decided' WHERE job_id = %(dead)s"),
    ("item_fences", "UPDATE queue_core_item SET fence = fence + 1 WHERE job_id = %(dead)s"),
    ("item_fences", "DELETE FROM queue_core_assignment WHERE id = %(assignment)s"),
    ("item_taken", "UPDATE queue_core_item SET taken_by_id = NULL, taken_until = NULL WHERE job_id = %(pulled)s"),
    ("item_taken", "UPDATE queue_core_assignment SET until = until + interval '1 s' WHERE ended_at IS NULL"),
    ("item_times", "UPDATE queue_core_item SET queued_at = queued_at - interval '1 s' WHERE job_id = %(manual)s"),
    ("item_times", "UPDATE queue_core_item SET opened_at = now() WHERE job_id = %(decided)s"),
    ("assignment_times", ("UPDATE queue_core_assignment SET ended_at = ended_at - interval '1 ms'"
                         " WHERE id = %(assignment)s")),
    ("assignment_ended", "UPDATE queue_core_assignment SET ended_as = 'expired' WHERE id = %(assignment)s"),
    ("assignment_ended", "DELETE FROM queue_core_decision WHERE job_id = %(decided)s"),
    ("lane_link", "UPDATE queue_core_lane SET connection_id = 999999"),
    ("stagerun_link", "UPDATE queue_core_stagerun SET policy_id = 999999"),
    ("hold_link", "UPDATE queue_core_hold SET run_id = 999999"),
    ("ticket_link", "UPDATE queue_core_ticket SET lane_id = 999999"),
    ("evidence_link", "DELETE FROM queue_core_ticket WHERE id = %(done_ticket)s"),
    ("job_link", "DELETE FROM queue_core_evidence WHERE ticket_id = %(done_ticket)s"),
    ("attempt_link", "DELETE FROM queue_core_job WHERE id = %(done)s"),
    ("lateanswer_link", "DELETE FROM queue_core_job WHERE id = %(done)s"),
    ("decision_link", "DELETE FROM queue_core_attempt WHERE job_id = %(done)s"),
    ("message_link", "DELETE FROM queue_core_decision WHERE job_id = %(done)s"),
    ("item_link", "UPDATE queue_core_item SET taken_by_id = 999999 WHERE job_id = %(pulled)s"),
    ("assignment_link", "DELETE FROM queue_core_item WHERE job_id = %(decided)s"),
    ("lane_totals", "UPDATE queue_core_lanetotal SET number = number + 1 WHERE code = 'DONE'"),
    ("lane_totals", "DELETE FROM queue_core_lanetotal WHERE code = 'item.manual'"),
    ("lane_totals", ("INSERT INTO queue_core_figurechange (lane_id, minute, counts, totals, due)"
                     " VALUES (%(lane)s, now(), '{}', '{\"resting\": 1}', '{}')")),
    ("lane_due", "UPDATE queue_core_waitingdue SET severity = 3 WHERE number > 0"),
    ("laneminute_counts", "UPDATE queue_core_laneminute SET counts = counts || '{\"result.APPROVED\": 7}'"),
    ("laneminute_counts", "UPDATE queue_core_laneminute SET counts = counts - 'stale'"),
    ("attempt_minute", "UPDATE queue_core_laneminute SET minute = minute - interval '1 day'"),
    ("auditentry_link", "UPDATE queue_core_auditentry SET actor_id = 999999"),
]  # fmt: skip


@pytest.fixture(scope="module")
def scene(django_db_setup: None, django_db_blocker) -> Iterator[Scene]:
    """One job of every kind, made once, in a transaction within which that of each test is a savepoint."""
    with made_once(django_db_blocker, staged) as rows:
        yield rows


def test_the_scene_itself_is_clean(scene: Scene) -> None:
    assert [f"{one.rule.code} {one.key}" for one in audit().findings] == []


@pytest.mark.parametrize(("code", "statement"), DAMAGE, ids=[f"{n} {code}" for n, (code, _) in enumerate(DAMAGE)])
def test_damage_is_found(scene: Scene, code: str, statement: str) -> None:
    damage(statement, scene)

    assert found_by(code)


def test_every_rule_has_damage_that_shows_it() -> None:
    assert {rule.code for rule in rules()} == {code for code, _ in [*DAMAGE, *DAMAGE_OF_ACTS]}


def test_a_row_that_is_right_by_the_second_look_is_not_reported(scene: Scene) -> None:
    """Rows move under the walk on a live system."""
    [rule] = [rule for rule in rules() if rule.code == "job_fences"]
    damage("UPDATE queue_core_job SET fence = fence + 1 WHERE id IN (%(waiting)s, %(requeued)s)", scene)
    suspects = judged([rule], [scene["waiting"], scene["requeued"], scene["done"]])
    damage("UPDATE queue_core_job SET fence = fence - 1 WHERE id = %(waiting)s", scene)
    found = confirmed(suspects)

    assert [one.key for one in suspects] == sorted([scene["waiting"], scene["requeued"]])
    assert [one.key for one in found] == [scene["requeued"]]


def test_the_list_is_bounded_and_the_totals_are_not(scene: Scene) -> None:
    damage("UPDATE queue_core_ticket SET seq = seq + 1", scene)
    report = audit(most_listed=2)

    assert len(report.findings) == 2
    assert report.totals["ticket_sequence"] > 2


def test_the_command_lists_what_is_wrong_and_ends_with_1(scene: Scene) -> None:
    out, err = StringIO(), StringIO()
    damage("UPDATE queue_core_job SET fence = fence + 1 WHERE id = %(waiting)s", scene)
    with pytest.raises(CommandError) as ended:
        call_command("audit_ledger", stdout=out, stderr=err)

    assert ended.value.returncode == 1
    assert f"job {scene['waiting']}: its attempts are not one for each fence from 1 (job_fences)" in out.getvalue()
    assert "jobs: 9 rows, 100 %" in err.getvalue()


def test_the_command_says_so_when_nothing_is_wrong(scene: Scene) -> None:
    out = StringIO()
    call_command("audit_ledger", stdout=out, stderr=StringIO(), chunk=3)

    assert "0 lost" in out.getvalue()
    assert "nothing is wrong" in out.getvalue()


@pytest.mark.parametrize("options", [{"chunk": 0}, {"chunk": 20_001}, {"list": -1}])
def test_the_command_refuses_bounds_that_are_none(options: dict[str, int]) -> None:
    with pytest.raises(CommandError, match="--chunk is from 1"):
        call_command("audit_ledger", **options)

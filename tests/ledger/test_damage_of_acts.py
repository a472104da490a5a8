"""Each kind of damage to what people do with decisions, done past triggers and foreign keys, is found by its rule."""

from collections.abc import Iterator

import pytest

from queue_core import figures
from queue_core.ledger import audit, rules
from queue_core.ledger.rules import InSql
from queue_core.ledger.sums import TALLY
from tests.factories import made_once
from tests.ledger.damage import damage, found_by
from tests.ledger.plans import pretend_millions, read_whole
from tests.ledger.staging import staged

pytestmark = pytest.mark.django_db

type Scene = dict[str, int]

HOLD = "lane_id, form, is_automatic, reason, params, note, started_at"
SOMEBODY_ELSE = "(SELECT id FROM reviewboard_person WHERE username = 'cleo')"
#: What is done, and the rule that must find it. Names in brackets are keys of the scene.
DAMAGE: list[tuple[str, str]] = [
    ("stagerun_place", "UPDATE queue_core_stagerun SET ended_at = started_at - interval '1 s', ended_as = 'held'"),
    ("stagerun_place", "UPDATE queue_core_policy SET lane_id = %(other_lane)s, version = 9 WHERE lane_id = %(lane)s"),
    ("stagerun_place", "UPDATE queue_core_stagerun SET resumes_id = id WHERE lane_id = %(lane)s"),
    ("hold_place", (f"INSERT INTO queue_core_hold ({HOLD}, ended_at)"
                   " VALUES (%(lane)s, 'hold', TRUE, 'new_lane', '{}', '', now(), now() - interval '1 s')")),
    ("hold_place", (f"INSERT INTO queue_core_hold ({HOLD}, run_id)"
                   " SELECT %(lane)s, 'hold', TRUE, 'new_lane', '{}', '', now(), id FROM queue_core_stagerun LIMIT 1")),
    ("lanerole_role", ("UPDATE queue_core_lanerole SET role_id ="
                      " (SELECT id FROM auth_group WHERE name = 'administrator')")),
    ("message_order", ("UPDATE queue_core_message SET number = number + 100000"
                      " WHERE ticket_id = %(told_ticket)s AND seq = 1")),
    ("message_order", "UPDATE queue_core_message SET number = NULL WHERE ticket_id = %(told_ticket)s AND seq = 1"),
    ("delivery_turn", ("UPDATE queue_core_delivery SET state = 'pending', ended_at = NULL, tries = 0"
                      " WHERE ticket_id = %(told_ticket)s AND kind = 'decision';"
                      "UPDATE queue_core_delivery SET tries = 1"
                      " WHERE ticket_id = %(told_ticket)s AND kind = 'decision.recalled'")),
    ("delivery_turn", "UPDATE queue_core_delivery SET number = NULL WHERE ticket_id = %(told_ticket)s"),
    ("decision_why", "UPDATE queue_core_decision SET why = 'correction' WHERE id = %(on_appeal)s"),
    ("decision_why", "UPDATE queue_core_decision SET why = 'second_look' WHERE id = %(corrected)s"),
    ("decision_why", "UPDATE queue_core_decision SET why = 'appeal' WHERE id = %(disputed)s"),
    ("decision_by_another", ("UPDATE queue_core_decision SET person_id = (SELECT person_id FROM queue_core_decision"
                            " WHERE id = %(appealed)s) WHERE id = %(on_appeal)s")),
    ("decision_by_another", ("UPDATE queue_core_decision SET person_id = (SELECT person_id FROM queue_core_secondlook)"
                            " WHERE id = %(disputed)s")),
    ("decision_taken_back", "UPDATE queue_core_decision SET verdict = NULL WHERE id = %(taken_back)s"),
    ("decision_taken_back", "UPDATE queue_core_decision SET person_id = %(cleo)s WHERE id = %(taken_back)s"),
    ("decision_taken_back", "UPDATE queue_core_message SET state = 'ready' WHERE decision_id = %(corrected)s"),
    ("decision_taken_back", "UPDATE queue_core_message SET number = 7000 WHERE decision_id = %(corrected)s"),
    ("decision_taken_back", "DELETE FROM queue_core_auditentry WHERE act = 'decision.taken_back'"),
    ("decision_unseen", "UPDATE queue_core_decision SET is_unseen = TRUE WHERE id = %(on_appeal)s"),
    ("decision_unseen", "UPDATE queue_core_decision SET verdict = 'APPROVED' WHERE is_unseen"),
    ("decision_unseen", "UPDATE queue_core_bulkact SET begun_at = begun_at + interval '1 day' WHERE id = %(rejected)s"),
    ("decision_unseen", "UPDATE queue_core_item SET severity = 2 WHERE closed_as = 'decided'"),
    ("decision_recalled", "DELETE FROM queue_core_recallentry"),
    ("decision_recalled", "UPDATE queue_core_recallentry SET outcome = 'passed_over'"),
    ("recall_ended", "UPDATE queue_core_recallentry SET outcome = NULL, at = NULL, job_id = NULL"),
    ("recall_counts", "DELETE FROM queue_core_recallentry WHERE outcome = 'withdrawn'"),
    ("recall_counts", "DELETE FROM queue_core_auditentry WHERE act = 'decisions.recalled'"),
    ("recallentry_outcome", "DELETE FROM queue_core_decision WHERE why = 'recall'"),
    ("recallentry_outcome", "DELETE FROM queue_core_message WHERE kind = 'decision.recalled'"),
    ("recallentry_outcome", "UPDATE queue_core_message SET state = 'ready' WHERE state = 'withdrawn'"),
    ("recallentry_outcome", "UPDATE queue_core_recallentry SET outcome = 'announced'"),
    ("recallentry_work", "DELETE FROM queue_core_item WHERE kind = 'recalled'"),
    ("recallentry_work", "UPDATE queue_core_recallentry SET job_id = %(looked_job)s"),
    ("secondlook_made", "UPDATE queue_core_secondlook SET agrees = TRUE"),
    ("secondlook_made", ("UPDATE queue_core_secondlook SET person_id = (SELECT person_id FROM queue_core_decision"
                        " WHERE id = %(looked)s)")),
    ("secondlook_made", "DELETE FROM queue_core_item WHERE kind = 'disputed'"),
    ("secondlook_made", "UPDATE queue_core_item SET closed_as = 'decided' WHERE kind = 'second'"),
    ("blindcheck_made", "UPDATE queue_core_blindcheck SET agrees = NOT agrees"),
    ("blindcheck_made", "UPDATE queue_core_blindcheck SET person_id = %(cleo)s"),
    ("blindcheck_made", ("DELETE FROM queue_core_decision WHERE job_id = %(disagreed)s AND assignment_id IS NOT NULL")),
    ("appeal_made", "UPDATE queue_core_appeal SET decision_id = %(looked)s"),
    ("appeal_made", "UPDATE queue_core_item SET params = '{}' WHERE kind = 'appeal'"),
    ("itempass_made", "UPDATE queue_core_assignment SET ended_as = 'given_back' WHERE ended_as = 'skipped'"),
    ("itempass_made", f"UPDATE queue_core_itempass SET to_id = {SOMEBODY_ELSE} WHERE passed_as = 'handed_over'"),
    ("itempass_made", "UPDATE queue_core_item SET for_leads = FALSE WHERE id = %(passed)s"),
    ("item_kept", "DELETE FROM queue_core_itempass WHERE passed_as = 'skipped'"),
    ("item_kept", "DELETE FROM queue_core_itempass WHERE passed_as = 'handed_over'"),
    ("item_kept", "DELETE FROM queue_core_itempass WHERE passed_as = 'escalated'"),
    ("item_kept", "DELETE FROM queue_core_appeal"),
    ("decision_ground", "DELETE FROM queue_core_reasoncodeversion"),
    ("assignment_times", ("UPDATE queue_core_assignment SET ended_at = ended_at - interval '1 ms'"
                         " WHERE ended_as = 'handed_over'")),
    ("outage_times", "UPDATE queue_core_outage SET closed_at = opened_at - interval '1 s'"),
    ("bulkact_ended", "UPDATE queue_core_bulkentry SET outcome = NULL, at = NULL WHERE act_id = %(requeued)s"),
    ("bulkact_counts", "DELETE FROM queue_core_bulkentry WHERE act_id = %(rejected)s AND place = 3"),
    ("bulkact_counts", "UPDATE queue_core_bulkentry SET outcome = 'failed' WHERE act_id = %(requeued)s"),
    ("bulkact_counts", "DELETE FROM queue_core_auditentry WHERE act = 'bulk.confirmed'"),
    ("bulkact_counts", "DELETE FROM queue_core_auditentry WHERE act = 'bulk.seconded'"),
    ("bulkentry_done", "DELETE FROM queue_core_auditentry WHERE act = 'job.requeued'"),
    ("bulkentry_done", "UPDATE queue_core_decision SET is_unseen = FALSE WHERE is_unseen"),
    ("bulkentry_done", "DELETE FROM queue_core_itempass WHERE passed_as = 'handed_over'"),
    ("bulkentry_done", "UPDATE queue_core_bulkentry SET outcome = 'done' WHERE act_id = %(stopped)s"),
    ("bulkentry_turn", "UPDATE queue_core_bulkentry SET outcome = 'done' WHERE outcome = 'sampled'"),
    ("bulkentry_turn", "UPDATE queue_core_bulkentry SET fence = fence + 9 WHERE act_id = %(requeued)s"),
    ("bulkentry_turn", ("UPDATE queue_core_bulkact SET confirmed_at = confirmed_at + interval '1 day'"
                       " WHERE id = %(requeued)s")),
    ("bulkentry_turn", ("UPDATE queue_core_bulkact SET stopped_at = NULL, stopped_by_id = NULL"
                       " WHERE id = %(stopped)s")),
    ("preservationhold_kept", ("UPDATE queue_core_evidence SET erased_at = (SELECT min(placed_at) FROM"
                              " queue_core_preservationhold) WHERE ticket_id = %(kept_ticket)s")),
    ("preservationhold_kept", "DELETE FROM queue_core_auditentry WHERE act = 'ticket.preservation_lifted'"),
    ("preservationhold_kept", "UPDATE queue_core_preservationhold SET placed_by_id = %(cleo)s"),
    ("evidence_erased", "UPDATE queue_core_decision SET note = 'its words' WHERE job_id = %(erased_job)s"),
    ("evidence_erased", ("UPDATE queue_core_attempt SET scores = '{\"insult\": 0.5}' WHERE job_id = %(erased_job)s")),
    ("evidence_erased", ("UPDATE queue_core_job SET state = 'WAITING', result = NULL, finished_at = NULL, attempts = 0"
                        " WHERE id = %(erased_job)s")),
    ("evidence_erased", "DELETE FROM queue_core_auditentry WHERE act = 'ticket.erased'"),
    ("evidencereport_made", "UPDATE queue_core_evidence SET is_restricted = FALSE WHERE id = %(kept_evidence)s"),
    ("evidencereport_made", "DELETE FROM queue_core_auditentry WHERE act = 'evidence.reported'"),
    ("importrun_counts", "DELETE FROM queue_core_importrefusal"),
    ("importrun_counts", ("UPDATE queue_core_importrun SET counts = counts || '{\"refused\": 7}'"
                         " WHERE id = %(imported)s")),
    ("importrun_counts", "UPDATE queue_core_importrun SET is_emptied = TRUE WHERE id = %(imported)s"),
    ("importrun_file", "DELETE FROM queue_core_importpart"),
    ("importrun_file", "UPDATE queue_core_importpart SET number = 1"),
    ("importrun_file", "UPDATE queue_core_importpart SET run_id = %(imported)s"),
    ("importrun_record", "UPDATE queue_core_importrun SET state = 'stopped' WHERE id = %(imported)s"),
    ("importrun_record", "DELETE FROM queue_core_auditentry WHERE act = 'import.ended'"),
    ("lanerole_link", "UPDATE queue_core_lanerole SET person_id = 999999"),
    ("policy_link", "UPDATE queue_core_policy SET made_by_id = 999999"),
    ("outageentry_link", "DELETE FROM queue_core_outage"),
    ("knownreply_link", "DELETE FROM queue_core_knownanswer"),
    ("preservationhold_link", "UPDATE queue_core_preservationhold SET lifted_by_id = 999999 WHERE id = %(lifted)s"),
    ("evidencereport_link", "DELETE FROM queue_core_evidence WHERE id = %(kept_evidence)s"),
    ("delivery_link", "DELETE FROM queue_core_endpoint"),
    ("itempass_link", "DELETE FROM queue_core_item WHERE id = %(passed)s"),
    ("secondlook_link", "DELETE FROM queue_core_decision WHERE id = %(looked)s"),
    ("blindcheck_link", "DELETE FROM queue_core_item WHERE job_id = %(agreed)s"),
    ("appeal_link", "DELETE FROM queue_core_decision WHERE id = %(appealed)s"),
    ("recall_link", "UPDATE queue_core_recall SET by_id = 999999"),
    ("recallentry_link", "DELETE FROM queue_core_recall"),
    ("bulkact_link", "UPDATE queue_core_bulkact SET by_id = 999999"),
    ("bulkentry_link", "DELETE FROM queue_core_bulkact"),
    ("importrefusal_link", "DELETE FROM queue_core_importrun"),
    ("deliverytry_link", "DELETE FROM queue_core_delivery"),
    ("endpoint_link", "UPDATE queue_core_endpoint SET changed_state_by_id = 999999"),
    ("outage_link", "UPDATE queue_core_outage SET connection_id = 999999"),
    ("knownanswer_link", "UPDATE queue_core_knownanswer SET lane_id = 999999"),
    ("reasoncodeversion_link", "DELETE FROM queue_core_reasoncode"),
    ("apikey_link", "UPDATE queue_core_apikey SET made_by_id = 999999"),
    ("alertepisode_link", "UPDATE queue_core_alertepisode SET acknowledged_by_id = 999999"),
    ("alertnotice_link", "DELETE FROM queue_core_alertepisode"),
    ("importrun_link", "UPDATE queue_core_importrun SET by_id = 999999"),
]  # fmt: skip


@pytest.fixture(scope="module")
def scene(django_db_setup: None, django_db_blocker) -> Iterator[Scene]:
    """One act of every kind, played once, in a transaction within which that of each test is a savepoint."""
    with pytest.MonkeyPatch.context() as patched, made_once(django_db_blocker, lambda: played(patched)) as rows:
        yield rows


def played(patched: pytest.MonkeyPatch) -> Scene:
    patched.setattr("queue_core.wakeups._send", lambda _task, *_args: None)
    for where in ("previewing", "confirming"):
        patched.setattr(f"queue_core.bulk.{where}.SAMPLE", 2)
    rows = staged()
    figures.fold()
    return rows


def test_the_scene_itself_is_clean(scene: Scene) -> None:
    assert [f"{one.rule.code} {one.key}" for one in audit().findings] == []


@pytest.mark.parametrize(("code", "statement"), DAMAGE, ids=[f"{n} {code}" for n, (code, _) in enumerate(DAMAGE)])
def test_damage_is_found(scene: Scene, code: str, statement: str) -> None:
    damage(statement, scene)

    assert found_by(code)


def test_each_rule_finds_its_rows_by_key_or_index(scene: Scene) -> None:
    """However large the tables are: an audit of millions reads each of its chunks in a moment."""
    pretend_millions()
    looks = {rule.code: rule.look for rule in rules() if isinstance(rule.look, InSql)}
    ids = list(range(1, 2001))
    whole = {code: read_whole(look.statement, {**look.params, "ids": ids}) for code, look in looks.items()}

    assert {code: tables for code, tables in whole.items() if tables} == {}
    assert read_whole(TALLY, {"ids": ids}) == set()
    assert read_whole("SELECT FROM queue_core_item WHERE severity = ANY(%(ids)s)", {"ids": ids}) == {"queue_core_item"}

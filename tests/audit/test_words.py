"""The audit in words: every act, what it was done to, and each value as people know it."""

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from django.contrib import admin
from django.utils import timezone

from queue_core.models import AuditEntry
from queue_core.states import EndpointState
from reviewboard import audit_words
from reviewboard.act_names import ACTS
from reviewboard.audit_text import act_row

ROOT = Path(__file__).parents[2]
RECORDED = re.compile(r"\b(?:record|Act|_note|_audit)\([^()\"]*\"([a-z]+\.[a-z_]+)\"")


def entry(kind, subject="7", subject_id="7", **fields):
    fields = {"act": "lane.changed", "actor_name": "ada", **fields}
    return AuditEntry(subject_type=kind, subject=subject, subject_id=subject_id, **fields)


def changes(kind, before=None, after=None, **fields):
    row = act_row(entry(kind, before=before, after=after), **fields)
    return [(one.name, one.before, one.after) for one in row.changes]


def recorded():
    """Every act that the code names where it records one."""
    files = [path for folder in ("queue_core", "reviewboard") for path in (ROOT / folder).rglob("*.py")]
    return {act for path in files for act in RECORDED.findall(path.read_text(encoding="utf-8"))}


def test_every_act_of_the_code_and_of_each_page_of_the_admin_is_in_words():
    named = recorded()
    made = {
        f"{model._meta.model_name}.{act}"
        for model, page in admin.site._registry.items()
        if page.form.__name__ != "PolicyForm" and model.__name__ != "KnownReply"
        for act in ("added", "changed")
    }
    turned = {f"endpoint.{state}" for state in EndpointState.values}

    assert {"lane.held", "lane.resumed", "endpoint.tried_now", "bulk.ended"} <= named
    assert sorted((named | made | turned) - ACTS.keys()) == []


@pytest.mark.parametrize(
    ("kind", "subject", "told"),
    [
        ("lane", "Comments", "lane Comments"),
        ("item", "12", "item 12"),
        ("person", "rita", "person rita"),
        ("apikey", "shop", "API key shop"),
        ("policy", "4 v3", "version 3 of the policy"),
        ("stagerun", "4/2", "stage 2"),
        ("outage", "4 2026-03-01 12:00", "outage 7"),
        ("bulkact", "requeue 7", "bulk act 7"),
        ("alertepisode", "held_late lane-4", "tickets are held over the target"),
        ("ofalaterversion", "x", "x"),
    ],
)
def test_what_an_act_was_done_to_is_named(kind, subject, told):
    assert str(act_row(entry(kind, subject)).target) == told


def test_each_value_is_shown_as_its_field_has_it_and_none_as_code():
    before = {"wait_target": 900.0, "two_person_rule": False, "exposure_default": "hidden", "title": ""}
    after = {"wait_target": 1200.0, "two_person_rule": True, "exposure_default": "live", "title": "Posts"}

    assert changes("lane", before, after) == [
        ("exposure when none is sent", "hidden from users", "LIVE while it waits"),
        ("target for the oldest wait", "15 min", "20 min"),
        ("title", "", "Posts"),
        ("two persons raise a stage", "no", "yes"),
    ]
    right = {"right": "hold_lane"}
    assert changes("item", None, right) == [("right that is missing", None, "May put a lane on hold")]
    was, now = {"lanes": [], "kinds": ["decision"]}, {"lanes": [4, 9], "kinds": []}
    assert changes("endpoint", was, now, lanes={4: "Posts"}) == [
        ("lanes", "all lanes", "Posts, 9"),
        ("messages", "decision", "none"),
    ]
    assert changes("person", {"roles": ["lead", "viewer"]}, {"roles": []}) == [("roles", "lead, viewer", "none")]
    assert changes("item", None, {"verdict": "REJECTED", "agrees": False, "mystery": 4}) == [
        ("agrees with the first", None, "no"),
        ("mystery", None, "4"),
        ("verdict", None, "rejected"),
    ]


def test_a_time_is_shown_in_the_zone_of_the_reader_with_its_name():
    at = datetime(2026, 3, 1, 20, 30, tzinfo=UTC).isoformat()
    with timezone.override("Asia/Tokyo"):
        assert changes("apikey", None, {"expires_at": at}) == [
            ("expires", None, "2026-03-02 05:30:00 Asia/Tokyo (UTC+09:00)")
        ]


def test_of_a_plan_only_the_fields_that_changed_are_shown_stage_by_stage():
    one = {"number": 1, "name": "probe", "cap": 2, "soak_time": 300.0}
    before = {"stages": [one, {"number": 2, "name": "half", "cap": 50, "soak_time": 300.0}]}
    after = {
        "stages": [one, {"number": 2, "name": "half", "cap": 80, "soak_time": 600.0}, {"number": 3, "name": "all"}]
    }

    assert sorted(changes("lane", before, after)) == [
        ("stage 2, cap", "50", "80"),
        ("stage 2, soak: time", "5 min", "10 min"),
        ("stage 3, name", None, "all"),
    ]


def test_what_holds_parts_is_written_out_and_cut():
    rules = [{"category": "offensive", "reject_at": 0.85, "reason_code": "insult"}] * 9
    [(name, _before, told)] = changes("policy", None, {"rules": rules})

    assert (name, len(told)) == ("rules", 201)
    assert told.startswith("category: offensive, reject_at: 0.85, reason code: insult · category")
    assert "{" not in told
    assert audit_words.value("bulkact", "terms", {"to": "again", "left": None}).count(":") == 1

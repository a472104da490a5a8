"""Two people at one form: what each of them changed is kept, and what both changed is told to the second (ADM-01)."""

import json
from datetime import timedelta

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import reverse

from queue_core import roles
from queue_core.models import AuditEntry, Lane, Stage
from reviewboard.models import Person
from tests.admin.forms import form_of
from tests.admin.test_admin import ada, admin, lane, lane_url
from tests.factories import make_connection, make_ground, make_lane

__all__ = ["ada", "admin", "lane"]
pytestmark = pytest.mark.django_db


@pytest.fixture
def other() -> Client:
    """Another administrator, whose name is Bea."""
    bea = Person.objects.create_user("bea", is_staff=True)
    roles.assign(bea, roles.ADMINISTRATOR)
    client = Client()
    client.force_login(bea)
    return client


def said(response: object) -> str:
    return response.content.decode()  # type: ignore[attr-defined,no-any-return]


def test_two_who_change_different_fields_are_both_kept_and_the_second_is_told(
    admin: Client, other: Client, lane: Lane
) -> None:
    mine = form_of(admin, lane_url(lane)) | {"wait_target": "00:20:00"}
    assert other.post(lane_url(lane), form_of(other, lane_url(lane)) | {"max_attempts": "5"}).status_code == 302

    answer = admin.post(lane_url(lane), mine, follow=True)

    assert "Somebody else changed “Attempts” meanwhile: it stays as they set it." in said(answer)
    lane.refresh_from_db()
    assert (lane.max_attempts, lane.wait_target, lane.version) == (5, timedelta(minutes=20), 3)
    entry = AuditEntry.objects.filter(act="lane.changed").latest("pk")
    assert (entry.before, entry.after) == ({"wait_target": 900.0}, {"wait_target": 1200.0})


def test_the_second_at_one_field_is_told_who_set_it_to_what_and_a_second_save_replaces_it(
    admin: Client, other: Client, lane: Lane
) -> None:
    mine = form_of(admin, lane_url(lane)) | {"max_attempts": "9", "title": "Posts", "wait_target": "00:40:00"}
    theirs = form_of(other, lane_url(lane)) | {"max_attempts": "5", "wait_target": "00:20:00"}
    assert other.post(lane_url(lane), theirs).status_code == 302

    answer = admin.post(lane_url(lane), mine)

    assert "It is now “5”, set by bea; you wrote “9”." in said(answer)
    assert "It is now “00:20:00”, set by bea; you wrote “00:40:00”." in said(answer)
    assert 'value="Posts"' in said(answer)
    lane.refresh_from_db()
    assert (lane.max_attempts, lane.title) == (5, "")
    again = mine | {"loaded": answer.context["adminform"].form["loaded"].value()}
    assert admin.post(lane_url(lane), again).status_code == 302
    lane.refresh_from_db()
    assert (lane.max_attempts, lane.title) == (9, "Posts")
    entry = AuditEntry.objects.filter(act="lane.changed").latest("pk")
    assert (entry.before["max_attempts"], entry.after["max_attempts"]) == (5, 9)


def test_two_who_set_one_field_to_the_same_agree(admin: Client, other: Client, lane: Lane) -> None:
    mine = form_of(admin, lane_url(lane)) | {"max_attempts": "5"}
    assert other.post(lane_url(lane), mine).status_code == 302

    assert admin.post(lane_url(lane), mine).status_code == 302
    assert AuditEntry.objects.filter(act="lane.changed").count() == 1


def test_what_is_checked_of_several_fields_is_checked_as_it_will_stand(
    admin: Client, other: Client, lane: Lane
) -> None:
    """One makes the connection slower, the other the lease shorter: each alone is right, both together are not."""
    mine = form_of(admin, lane_url(lane)) | {"lease": "00:00:20"}
    slow = make_connection(kind="local", call_time_limit=timedelta(seconds=60))
    theirs = form_of(other, lane_url(lane)) | {"connection": str(slow.pk)}
    assert other.post(lane_url(lane), theirs).status_code == 302

    answer = admin.post(lane_url(lane), mine)

    assert "A lease is at least 60.5 s here" in said(answer)


def test_a_form_that_does_not_say_what_it_was_loaded_with_saves_nothing(admin: Client) -> None:
    ground = make_ground("insult")
    url = reverse("admin:queue_core_reasoncode_change", args=[ground.pk])
    sent = form_of(admin, url) | {"title": "Something else"}

    for loaded in ("", "nonsense", "[]", "1", "{}", '{"is_active": "perhaps"}'):
        assert "This form is not as the page had it." in said(admin.post(url, sent | {"loaded": loaded})), loaded

    title = ground.title
    ground.refresh_from_db()
    assert ground.title == title


def test_two_at_one_plan_keep_each_others_stages(admin: Client, other: Client, lane: Lane) -> None:
    mine = form_of(admin, lane_url(lane)) | {"stages-1-cap": "200", "stages-0-soak_completions": "7"}
    theirs = form_of(other, lane_url(lane)) | {"stages-0-soak_completions": "9", "stages-1-name": "all"}
    assert other.post(lane_url(lane), theirs).status_code == 302

    answer = admin.post(lane_url(lane), mine)

    assert "It is now “9”; you wrote “7”." in said(answer)
    assert admin.post(lane_url(lane), mine | {"stages-0-soak_completions": "20"}).status_code == 302
    assert list(Stage.objects.values_list("soak_completions", "name", "cap")) == [(9, "probe", 1), (20, "all", 200)]


def test_a_stage_that_was_removed_or_added_meanwhile_is_told(admin: Client, other: Client, lane: Lane) -> None:
    mine = form_of(admin, lane_url(lane)) | {"stages-1-cap": "200"}
    assert other.post(lane_url(lane), form_of(other, lane_url(lane)) | {"stages-1-DELETE": "on"}).status_code == 302

    assert "Somebody else removed a stage meanwhile." in said(admin.post(lane_url(lane), mine))

    Stage.objects.create(lane=lane, number=2, name="half", cap=50)
    falling = form_of(admin, lane_url(lane)) | {"stages-0-cap": "60"}
    assert "A later stage has at least the cap" in said(admin.post(lane_url(lane), falling))


def test_roles_are_merged_like_any_field_and_a_role_in_conflict_is_named(admin: Client, other: Client) -> None:
    place = make_lane(title="Posts")
    rita = Person.objects.create_user("rita")
    url = reverse("admin:reviewboard_person_change", args=[rita.pk])
    reviewer, viewer = (Group.objects.get(name=name) for name in (roles.REVIEWER, roles.VIEWER))
    mine = form_of(admin, url)
    theirs = form_of(other, url) | {"groups": [reviewer.pk], "on_lanes": [f"lead:{place.pk}"]}
    assert other.post(url, theirs).status_code == 302

    assert admin.post(url, mine | {"email": "rita@example.org"}).status_code == 302
    answer = admin.post(url, mine | {"groups": [viewer.pk], "on_lanes": [f"viewer:{place.pk}"]})

    assert "It is now “reviewer”, set by bea; you wrote “viewer”." in said(answer)
    assert "It is now “lead on Posts”, set by bea; you wrote “viewer on Posts”." in said(answer)
    rita.refresh_from_db()
    assert (rita.email, [group.name for group in rita.groups.all()]) == ("rita@example.org", ["reviewer"])


def test_no_form_of_a_person_carries_the_passwords_hash_nor_sets_an_older_one_back(admin: Client) -> None:
    rita = Person.objects.create_user("rita", password="the first long password")
    url = reverse("admin:reviewboard_person_change", args=[rita.pk])
    mine = form_of(admin, url)

    assert set(json.loads(str(mine["loaded"]))) == {
        "username", "first_name", "last_name", "email", "timezone", "language", "is_active", "is_staff", "groups",
        "on_lanes",
    }  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        # Between the reading of the row and its lock somebody sets another password.
        lock = "reviewboard.person_form._lock_with_administrators"
        patch.setattr(lock, lambda person: _set_password(person, "second"))
        assert admin.post(url, mine | {"email": "rita@example.org"}).status_code == 302

    rita.refresh_from_db()
    assert (rita.email, rita.check_password("second")) == ("rita@example.org", True)


def _set_password(person: Person, word: str) -> None:
    fresh = Person.objects.get(pk=person.pk)
    fresh.set_password(word)
    fresh.save()

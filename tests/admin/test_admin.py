"""What administrators change, and that nobody's save undoes another's."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import reverse

from queue_core import roles
from queue_core.models import AuditEntry, Lane, ModelConnection, Policy, Stage
from queue_core.states import HoldReason
from reviewboard.models import Person
from tests.admin.forms import form_of
from tests.factories import make_connection, make_ground, make_lane

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada() -> Person:
    person = Person.objects.create_user("ada", is_staff=True)
    roles.assign(person, roles.ADMINISTRATOR)
    return person


@pytest.fixture
def admin(ada: Person) -> Client:
    client = Client()
    client.force_login(ada)
    return client


def lane_url(lane: Lane) -> str:
    return reverse("admin:queue_core_lane_change", args=[lane.pk])


@pytest.fixture
def lane() -> Lane:
    lane = make_lane(lease=timedelta(seconds=100), connection=make_connection(kind="local"))
    Stage.objects.create(lane=lane, number=1, name="probe", cap=1)
    Stage.objects.create(lane=lane, number=2, name="steady", cap=100)
    return lane


def test_a_change_is_written_with_an_audit_row_of_only_what_changed(admin: Client, ada: Person, lane: Lane) -> None:
    """ADM-08: the audit holds the one field, with its true old and new value."""
    sent = form_of(admin, lane_url(lane)) | {"max_attempts": "5"}

    response = admin.post(lane_url(lane), sent)

    assert response.status_code == 302, response.context["errors"]
    lane.refresh_from_db()
    assert (lane.max_attempts, lane.version) == (5, 2)
    entry = AuditEntry.objects.get(act="lane.changed")
    assert (entry.actor, entry.before, entry.after) == (ada, {"max_attempts": 3}, {"max_attempts": 5})


def test_what_the_ramp_wrote_meanwhile_stays(admin: Client, lane: Lane) -> None:
    """ADM-01: fields of the machine are not in the form, so a save cannot bring back what they were."""
    sent = form_of(admin, lane_url(lane)) | {"title": "Posts", "cap": "9999", "run": "", "judged_at": ""}
    Lane.objects.filter(pk=lane.pk).update(cap=7)

    assert admin.post(lane_url(lane), sent).status_code == 302

    lane.refresh_from_db()
    assert (lane.cap, lane.title) == (7, "Posts")
    assert lane.run is not None


def test_editing_the_plan_takes_a_version_and_lifts_no_live_cap(admin: Client, lane: Lane) -> None:
    sent = form_of(admin, lane_url(lane)) | {"stages-1-cap": "5000"}

    assert admin.post(lane_url(lane), sent).status_code == 302

    lane.refresh_from_db()
    assert (lane.cap, lane.version) == (100, 2)
    entry = AuditEntry.objects.get(act="lane.plan_changed")
    assert [stage["cap"] for stage in entry.before["stages"]] == [1, 100]
    assert [stage["cap"] for stage in entry.after["stages"]] == [1, 5000]


def test_a_plan_with_a_gap_or_a_falling_cap_is_refused(admin: Client, lane: Lane) -> None:
    for change in ({"stages-1-number": "3"}, {"stages-0-cap": "101"}):
        response = admin.post(lane_url(lane), form_of(admin, lane_url(lane)) | change)

        assert response.status_code == 200
        assert response.context["inline_admin_formsets"][0].formset.non_form_errors()


def test_a_lease_shorter_than_a_call_is_refused_with_the_limit(admin: Client, lane: Lane) -> None:
    response = admin.post(lane_url(lane), form_of(admin, lane_url(lane)) | {"lease": "00:00:05"})

    assert "A lease is at least 10.5 s here" in response.content.decode()


@pytest.mark.parametrize("length", ["4000000 00:00:00", "-1 00:00:00"])
def test_a_length_of_time_that_leads_out_of_all_dates_is_refused(admin: Client, lane: Lane, length: str) -> None:
    """RET-01: a back-off that could not be added to the clock kept workers from giving a job back."""
    sent = form_of(admin, lane_url(lane)) | {"backoff_cap": length, "stages-0-window": length}

    response = admin.post(lane_url(lane), sent)

    assert response.content.decode().count("A length of time is from 0 to 366 days here.") == 2


def test_changing_a_connection_holds_its_running_lanes(admin: Client, lane: Lane) -> None:
    url = reverse("admin:queue_core_modelconnection_change", args=[lane.connection_id])

    response = admin.post(url, form_of(admin, url) | {"model": "newer"})

    assert response.status_code == 302
    lane.refresh_from_db()
    assert lane.run is None
    assert lane.hold is not None
    assert lane.hold.reason == HoldReason.CONNECTION_CHANGED


def test_a_connection_that_cannot_be_built_is_refused(admin: Client) -> None:
    response = admin.post(
        reverse("admin:queue_core_modelconnection_add"),
        {"name": "m", "kind": "nonsense", "call_time_limit": "00:00:10", "options": "{}"},
    )

    assert response.status_code == 200
    assert not ModelConnection.objects.exists()


def test_a_new_lane_is_on_hold_with_its_plan(admin: Client) -> None:
    connection = make_connection(kind="local")
    url = reverse("admin:queue_core_lane_add")
    sent = form_of(admin, url) | {
        "name": "comments",
        "connection": str(connection.pk),
        "stages-TOTAL_FORMS": "1",
        "stages-0-number": "1",
        "stages-0-name": "probe",
        "stages-0-cap": "1",
        "stages-0-soak_completions": "5",
        "stages-0-soak_time": "60",
        "stages-0-window": "300",
        "stages-0-least_sample": "5",
        "stages-0-max_error_ratio": "0.1",
        "stages-0-max_timeout_ratio": "0.1",
        "stages-0-max_stale_ratio": "0.1",
        "stages-0-known_every": "600",
        "stages-0-blind_share": "0",
        "stages-0-least_blind": "10",
    }

    response = admin.post(url, sent)

    assert response.status_code == 302, response.context["errors"]
    lane = Lane.objects.get(name="comments")
    assert lane.hold is not None
    assert (lane.hold.reason, lane.stages.count()) == (HoldReason.NEW_LANE, 1)
    assert lane.policy is not None


def test_a_new_lane_comes_with_the_usual_plan_and_an_empty_number_leaves_a_stage_out(admin: Client) -> None:
    url = reverse("admin:queue_core_lane_add")
    sent = form_of(admin, url) | {"name": "comments", "connection": str(make_connection(kind="local").pk)}

    response = admin.post(url, sent | {"stages-3-number": ""})

    assert response.status_code == 302, response.context["errors"]
    assert list(Stage.objects.values_list("number", "name", "cap")) == [
        (1, "probe", 2),
        (2, "trickle", 10),
        (3, "half", 50),
    ]


def test_a_policy_is_made_as_the_next_version_and_does_not_rule_yet(admin: Client, lane: Lane) -> None:
    make_ground("insult")
    rules = '[{"category": "offensive", "reject_at": 0.9, "approve_below": 0.4, "reason_code": "insult"}]'

    response = admin.post(reverse("admin:queue_core_policy_add"), {"lane": lane.pk, "rules": rules, "note": "stricter"})

    assert response.status_code == 302, response.context["errors"]
    lane.refresh_from_db()
    assert Policy.objects.filter(lane=lane).count() == 2
    assert lane.policy is not None
    assert lane.policy.version == 1


def test_a_new_policy_shows_an_example_and_not_the_word_null(admin: Client, lane: Lane) -> None:
    page = admin.get(reverse("admin:queue_core_policy_add")).content.decode()

    assert "null" not in page.partition("<form")[2].partition("</form>")[0]
    assert "approve_below" in page.partition("placeholder=")[2]


def test_a_broken_policy_is_refused_naming_the_field(admin: Client, lane: Lane) -> None:
    rules = '[{"category": "offensive", "reject_at": 0.4, "approve_below": 0.9, "reason_code": "nothing"}]'

    response = admin.post(reverse("admin:queue_core_policy_add"), {"lane": lane.pk, "rules": rules})

    shown = response.content.decode()
    assert response.status_code == 200
    assert "rules[0].approve_below" in shown
    assert "rules[0].reason_code" in shown


@pytest.mark.parametrize("name", ["lane", "modelconnection", "policy", "reasoncode"])
def test_nothing_is_deleted_or_acted_on_in_bulk_adm_06(admin: Client, lane: Lane, name: str) -> None:
    """ADM-02, ADM-09: no list editing, no delete_selected, no save-as."""
    url = reverse(f"admin:queue_core_{name}_changelist")

    admin.post(url, {"action": "delete_selected", "_selected_action": [str(lane.pk)], "post": "yes"})

    assert Lane.objects.filter(pk=lane.pk).exists()
    assert "delete_selected" not in admin.get(url).content.decode()


def test_people_without_the_right_get_in_nowhere(lane: Lane) -> None:
    """ADM-09: a lead who is staff may look at nothing here and change nothing."""
    lead = Person.objects.create_user("leo", is_staff=True)
    roles.assign(lead, roles.LEAD)
    client = Client()
    client.force_login(lead)

    assert client.get(lane_url(lane)).status_code == 403
    assert client.post(lane_url(lane), {"max_attempts": "9"}).status_code == 403


def test_the_last_administrator_stays_one(admin: Client, ada: Person) -> None:
    url = reverse("admin:reviewboard_person_change", args=[ada.pk])
    viewer = Group.objects.get(name=roles.VIEWER)

    response = admin.post(url, form_of(admin, url) | {"groups": [viewer.pk]})

    assert response.status_code == 200
    assert "This is the last administrator" in response.content.decode()


def test_a_changed_role_is_audited_by_name(admin: Client) -> None:
    rita = Person.objects.create_user("rita")
    url = reverse("admin:reviewboard_person_change", args=[rita.pk])
    reviewer = Group.objects.get(name=roles.REVIEWER)

    response = admin.post(url, form_of(admin, url) | {"groups": [reviewer.pk]})

    assert response.status_code == 302, response.context["errors"]
    entry = AuditEntry.objects.get(act="person.changed")
    assert (entry.before, entry.after) == ({"roles": []}, {"roles": ["reviewer"]})


def test_an_administrator_cannot_make_a_superuser(admin: Client) -> None:
    rita = Person.objects.create_user("rita")
    url = reverse("admin:reviewboard_person_change", args=[rita.pk])

    admin.post(url, form_of(admin, url) | {"is_superuser": "on"})

    rita.refresh_from_db()
    assert not rita.is_superuser


def test_an_administrator_does_not_change_a_superuser_nor_set_their_password(admin: Client) -> None:
    root = Person.objects.create_superuser("root", password="the first long password")
    change = reverse("admin:reviewboard_person_change", args=[root.pk])
    word = {"usable_password": "true", "password1": "another long password", "password2": "another long password"}

    answers = [
        admin.get(change).status_code,
        admin.post(change, {"username": "root", "email": "ada@example.org"}).status_code,
        admin.post(reverse("admin:auth_user_password_change", args=[root.pk]), word).status_code,
    ]

    root.refresh_from_db()
    assert answers == [200, 403, 403]
    assert (root.check_password("the first long password"), root.email) == (True, "")


def test_a_password_set_by_an_administrator_is_on_record_without_the_password(admin: Client, ada: Person) -> None:
    rita = Person.objects.create_user("rita")
    word = {"usable_password": "true", "password1": "another long password", "password2": "another long password"}

    response = admin.post(reverse("admin:auth_user_password_change", args=[rita.pk]), word)

    assert response.status_code == 302
    entry = AuditEntry.objects.get(act="person.password_set")
    assert (entry.actor, entry.subject_id, entry.before, entry.after) == (ada, str(rita.pk), None, None)


def test_a_password_that_somebody_sets_for_themselves_is_on_record_too(admin: Client, ada: Person) -> None:
    ada.set_password("the first long password")
    ada.save()
    admin.force_login(ada)
    word = {"new_password1": "another long password", "new_password2": "another long password"}

    wrong = admin.post(reverse("admin:password_change"), word | {"old_password": "guessed"})
    right = admin.post(reverse("admin:password_change"), word | {"old_password": "the first long password"})

    assert (wrong.status_code, right.status_code) == (200, 302)
    entry = AuditEntry.objects.get(act="person.password_set")
    assert (entry.actor, entry.subject_id, entry.before, entry.after) == (ada, str(ada.pk), None, None)


def test_an_old_form_of_a_person_does_not_give_back_what_was_taken_meanwhile(admin: Client) -> None:
    """ADM-01: an account that was closed stays closed, and a role that was taken stays taken."""
    rita = Person.objects.create_user("rita")
    roles.assign(rita, roles.LEAD)
    url = reverse("admin:reviewboard_person_change", args=[rita.pk])
    old = form_of(admin, url)
    closed = {name: value for name, value in old.items() if name not in ("is_active", "groups")}
    assert admin.post(url, closed).status_code == 302

    assert admin.post(url, old | {"email": "rita@example.org"}).status_code == 302

    rita.refresh_from_db()
    assert (rita.is_active, rita.email, rita.groups.count()) == (False, "rita@example.org", 0)

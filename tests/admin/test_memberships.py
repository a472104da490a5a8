"""Roles on single lanes in the admin, and who may not lose theirs."""

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import reverse

from queue_core import people, roles
from queue_core.models import AuditEntry, Lane, LaneRole
from reviewboard.models import Person
from tests.admin.forms import form_of
from tests.admin.test_admin import ada, admin
from tests.factories import make_lane

__all__ = ["ada", "admin"]
pytestmark = pytest.mark.django_db


def url_of(person: Person) -> str:
    return reverse("admin:reviewboard_person_change", args=[person.pk])


def on_lane(person: Person, role: str, lane: Lane) -> None:
    LaneRole.objects.create(person=person, role=Group.objects.get(name=role), lane=lane)


def save(admin: Client, person: Person, **changed: object) -> object:
    return admin.post(url_of(person), form_of(admin, url_of(person)) | changed)


def said(response: object) -> str:
    return response.content.decode()  # type: ignore[attr-defined,no-any-return]


def test_a_role_on_a_lane_is_given_and_taken_with_an_audit_row_of_only_that(admin: Client) -> None:
    lane, rita = make_lane(), Person.objects.create_user("rita")

    assert save(admin, rita, on_lanes=[f"reviewer:{lane.pk}"]).status_code == 302  # type: ignore[attr-defined]

    assert people.may(Person.objects.get(pk=rita.pk), "decide_item", lane)
    given = AuditEntry.objects.get(act="person.changed")
    assert (given.before, given.after) == ({"lane_roles": []}, {"lane_roles": [f"reviewer on {lane.name}"]})
    assert save(admin, rita, on_lanes=[]).status_code == 302  # type: ignore[attr-defined]
    assert not LaneRole.objects.exists()


def test_an_administrators_role_is_not_one_of_a_single_lane(admin: Client) -> None:
    lane, rita = make_lane(), Person.objects.create_user("rita")

    answer = save(admin, rita, on_lanes=[f"administrator:{lane.pk}"])

    assert answer.status_code == 200  # type: ignore[attr-defined]
    assert not LaneRole.objects.exists()


@pytest.mark.parametrize("changed", [{"on_lanes": []}, {"is_active": ""}])
def test_the_last_lead_of_a_lane_stays_one_and_the_lane_is_named(admin: Client, changed: dict[str, object]) -> None:
    lane, leo = make_lane(title="Comments"), Person.objects.create_user("leo")
    on_lane(leo, roles.LEAD, lane)

    answer = save(admin, leo, **changed)

    assert "This is the last lead of Comments" in said(answer)
    assert LaneRole.objects.get().person == leo
    assert Person.objects.get(pk=leo.pk).is_active
    other = Person.objects.create_user("lea")
    on_lane(other, roles.LEAD, lane)
    assert save(admin, leo, **changed).status_code == 302  # type: ignore[attr-defined]


def test_a_lead_of_all_lanes_is_the_last_one_where_nobody_leads_one(admin: Client) -> None:
    led, alone = make_lane(title="Led"), make_lane(title="Alone")
    leo, lea = Person.objects.create_user("leo"), Person.objects.create_user("lea")
    roles.assign(leo, roles.LEAD)
    on_lane(lea, roles.LEAD, led)

    answer = save(admin, leo, groups=[])

    assert "This is the last lead of Alone" in said(answer)
    assert alone.title not in said(save(admin, lea, on_lanes=[])).partition("errornote")[2][:400]


@pytest.mark.parametrize("changed", [{"is_active": ""}, {"is_staff": ""}, {"is_superuser": ""}])
def test_the_first_superuser_of_a_site_is_its_last_administrator(client: Client, changed: dict[str, object]) -> None:
    root = Person.objects.create_superuser("root")
    client.force_login(root)

    answer = save(client, root, **changed)

    assert "This is the last administrator" in said(answer)
    other = Person.objects.create_user("ada", is_staff=True)
    roles.assign(other, roles.ADMINISTRATOR)
    assert save(client, root, **changed).status_code == 302  # type: ignore[attr-defined]

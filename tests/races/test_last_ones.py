"""Two administrators at once, each of whom would leave nobody: the second is told so, and somebody stays."""

import pytest
from django.contrib.auth.models import Group
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse

from queue_core import roles
from queue_core.models import AuditEntry, Lane, LaneRole
from reviewboard.models import Person
from tests.admin.test_admin import form_of
from tests.factories import make_lane
from tests.locking import holding, started, wait_until_blocked

pytestmark = pytest.mark.django_db(transaction=True)


def administrator(name: str) -> Person:
    person = Person.objects.create_user(name, is_staff=True)
    roles.assign(person, roles.ADMINISTRATOR)
    return person


def lead(name: str, lane: Lane) -> Person:
    person = Person.objects.create_user(name)
    LaneRole.objects.create(person=person, role=Group.objects.get(name=roles.LEAD), lane=lane)
    return person


class Desk:
    """An administrator with one person's page open."""

    def __init__(self, who: Person, of: Person) -> None:
        self.client = Client()
        self.client.force_login(who)
        self.url = reverse("admin:reviewboard_person_change", args=[of.pk])
        self.form = form_of(self.client, self.url)

    def save(self, **changed: object) -> HttpResponse:
        response: HttpResponse = self.client.post(self.url, self.form | changed)
        return response


def test_of_two_administrators_who_take_each_others_role_the_second_is_told_that_one_is_the_last() -> None:
    ada, bob = administrator("ada"), administrator("bob")
    first, second = Desk(ada, bob), Desk(bob, ada)

    with holding(lambda: first.save(groups=[])) as saved:
        loser = started("bob", lambda: second.save(is_staff=""))
        wait_until_blocked(loser)

    assert saved.status_code == 302
    assert "This is the last administrator" in loser.outcome().content.decode()
    left = Person.objects.filter(groups__name=roles.ADMINISTRATOR, is_active=True, is_staff=True)
    assert [person.username for person in left] == ["ada"]
    assert [entry.subject for entry in AuditEntry.objects.filter(act="person.changed")] == ["bob"]


def test_of_two_who_take_a_lane_from_its_two_leads_the_second_is_told_that_one_is_the_last() -> None:
    """One lead by a role taken, the other by a closed account: both are gone for the lane."""
    lane = make_lane(title="Comments")
    leo, lea = lead("leo", lane), lead("lea", lane)
    first, second = Desk(administrator("ada"), leo), Desk(administrator("bob"), lea)

    with holding(lambda: first.save(on_lanes=[])) as saved:
        loser = started("bob", lambda: second.save(is_active=""))
        wait_until_blocked(loser)

    assert saved.status_code == 302
    assert "This is the last lead of Comments" in loser.outcome().content.decode()
    assert [role.person for role in LaneRole.objects.select_related("person")] == [lea]
    assert Person.objects.get(pk=lea.pk).is_active

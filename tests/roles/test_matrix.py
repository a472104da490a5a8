"""Every role against every address and verb. The tables are matrix.py and verbs.py; docs/rights.md prints them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.core.exceptions import ObjectDoesNotExist
from django.db import transaction
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from queue_core import roles
from queue_core.errors import CallerError, NotPermitted
from queue_core.models import AuditEntry, LaneRole
from reviewboard.models import Person
from tests.roles.matrix import ALL, ELSEWHERE, MATRIX, ON, OPEN, OWN, SIGNED_IN, SOMEWHERE, Entry
from tests.roles.printed import as_markdown
from tests.roles.scene import Scene, make_scene, with_role
from tests.roles.scene_roles import ROLES
from tests.roles.verbs import ASKED_BY_OTHERS, VERBS, public_verbs

pytestmark = pytest.mark.django_db

ON_A_LANE = (roles.VIEWER, roles.REVIEWER, roles.SPECIALIST, roles.LEAD)


@pytest.fixture
def scene(db: None) -> Scene:
    roles.restore()
    return make_scene(with_role(roles.LEAD))


def names_of(patterns: list[Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for one in patterns:
        address = prefix + str(one.pattern)
        if isinstance(one, URLResolver):
            yield from names_of(one.url_patterns, address)
        elif isinstance(one, URLPattern):
            yield address, one.name or ""


def test_every_address_of_the_site_has_an_entry_and_every_entry_an_address() -> None:
    found = {
        name for address, name in names_of(get_resolver().url_patterns) if not address.lstrip("^").startswith(ELSEWHERE)
    }

    assert found == set(MATRIX)


def status(client: Client, entry: Entry, name: str, scene: Scene) -> tuple[int, str]:
    """What an address answers; what it did is undone."""
    with transaction.atomic():
        answer = getattr(client, entry.method)(reverse(name, args=entry.args(scene)), entry.data(scene))
        transaction.set_rollback(True)
    return answer.status_code, answer.headers.get("Location", "")


def may(entry: Entry, rights: set[str], *, is_there: bool) -> bool | None:
    """What the tables say of a reader with these rights, `is_there` on the lane that is asked about. None: depends."""
    if entry.rule in (OPEN, SIGNED_IN):
        return True
    has = all(one in rights for one in entry.rights) if entry.rule == ALL else bool(rights & set(entry.rights))
    if entry.rule in (ON, ALL):
        return has and is_there
    return None if entry.rule == OWN and has else has


def differing(client: Client, scene: Scene, rights: set[str], *, is_there: bool) -> dict[str, object]:
    found = {}
    for name, entry in MATRIX.items():
        expected = may(entry, rights, is_there=is_there)
        if expected is not None and name != "sign_out":
            answered = status(client, entry, name, scene)
            if (answered[0] != 404) != expected or answered[0] >= 500:
                found[name] = (answered, expected)
    return found


@pytest.mark.parametrize("role", ROLES)
def test_a_role_everywhere_finds_what_its_rights_are_for_and_nothing_else_adm_09(scene: Scene, role: str) -> None:
    client = Client()
    client.force_login(with_role(role))

    assert differing(client, scene, set(roles.RIGHTS[role]), is_there=True) == {}


def test_somebody_without_a_role_finds_nothing(scene: Scene) -> None:
    client = Client()
    client.force_login(Person.objects.create_user("xavier"))

    assert differing(client, scene, set(), is_there=True) == {}


def test_all_roles_on_one_lane_open_nothing_of_another_mod_10(scene: Scene) -> None:
    other = make_scene(with_role(roles.LEAD))
    somebody = Person.objects.create_user("lena")
    for role in ON_A_LANE:
        LaneRole.objects.create(person=somebody, role=Group.objects.get(name=role), lane=scene.lane)
    client = Client()
    client.force_login(somebody)
    rights = {right for role in ON_A_LANE for right in roles.RIGHTS[role]}

    assert differing(client, scene, rights, is_there=True) == {}
    assert differing(client, other, rights, is_there=False) == {}


def test_a_try_to_act_on_a_row_of_another_lane_is_on_record_and_a_look_is_not_mod_10(scene: Scene) -> None:
    other = make_scene(with_role(roles.LEAD))
    somebody, client = with_role(roles.LEAD, scene.lane), Client()
    client.force_login(somebody)
    tried = {
        "item_decide": (other.item, "decide_item"),
        "job_move_deadline": (other.job, "move_deadlines"),
        "outage_note": (other.outage, "manage_outage"),
        "alert_acknowledge": (other.alert, "hold_lane"),
        "endpoint_disable": (other.endpoint, "manage_deliveries"),
    }

    looks = [client.get(reverse(name, args=[row.pk])) for name, row in (("item", other.item), ("job", other.job))]
    acts = [client.post(reverse(name, args=[row.pk])) for name, (row, _right) in tried.items()]
    acts += [client.post(reverse("lane_hold", args=[other.lane.name])), client.post(reverse("item_decide", args=[0]))]

    assert {answer.status_code for answer in [*looks, *acts]} == {404}
    denied = AuditEntry.objects.filter(act="act.denied").order_by("pk")
    assert [(one.actor_name, one.subject_type, one.subject_id, one.after) for one in denied] == [
        (somebody.username, row._meta.model_name, str(row.pk), {"right": right})
        for row, right in [*tried.values(), (other.lane, "hold_lane")]
    ]
    assert {one.lane for one in denied} == {other.lane, None}, "an outage and an endpoint are of no lane"
    client.force_login(with_role(roles.LEAD))
    for name, argument in (("lane", other.lane.name), ("job", other.job.pk)):
        assert "without the right" not in client.get(reverse(name, args=[argument])).content.decode(), "no act was done"


def test_a_stranger_is_led_to_sign_in_from_every_address_but_the_open_ones(scene: Scene) -> None:
    client = Client()

    answers = {name: status(client, entry, name, scene) for name, entry in MATRIX.items() if entry.rule != OPEN}

    assert {name for name, (code, to) in answers.items() if code != 302 or not to.startswith("/sign-in/")} == set()


def test_lists_show_the_rows_of_ones_own_lanes_alone(scene: Scene) -> None:
    other = make_scene(with_role(roles.LEAD))
    client = Client()
    client.force_login(with_role(roles.LEAD, scene.lane))

    for name in [name for name, entry in MATRIX.items() if entry.rule == SOMEWHERE and entry.method == "get"]:
        answer = client.get(reverse(name, args=MATRIX[name].args(scene)))
        if answer.status_code == 200:
            body = b"".join(answer).decode() if answer.streaming else answer.content.decode()
            assert other.lane.name not in body, name
            assert other.item.ticket.external_id not in body, name


def test_every_verb_that_a_person_does_has_an_entry() -> None:
    assert public_verbs() == set(VERBS) | ASKED_BY_OTHERS


def refused(name: str, scene: Scene, person: Person) -> bool:
    """Whether a verb refuses this person; what it did is undone."""
    _rights, verb = VERBS[name]
    with transaction.atomic():
        try:
            verb(scene, person)
        except NotPermitted:
            return True
        except (CallerError, ObjectDoesNotExist):
            return False
        finally:
            transaction.set_rollback(True)
    return False


@pytest.mark.parametrize("role", [*ROLES, None])
def test_a_verb_is_refused_to_every_role_without_its_right_and_to_no_other(scene: Scene, role: str | None) -> None:
    person = with_role(role) if role else Person.objects.create_user("xavier")
    rights = set(roles.RIGHTS[role]) if role else set()

    wrong = {
        name
        for name, (needed, _verb) in VERBS.items()
        if refused(name, scene, person) != (not all(right in rights for right in needed))
    }

    assert wrong == set()


def test_the_tables_are_printed_as_they_are() -> None:
    """Written by: uv run python -m tests.roles > docs/rights.md"""
    assert Path("docs/rights.md").read_text() == as_markdown()

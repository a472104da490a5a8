from collections.abc import Callable

import pytest
from django.contrib.auth.models import Group, Permission
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader

from queue_core import roles
from queue_core.models import ReasonCodeVersion
from reviewboard.models import Person
from tests.factories import past_the_guards

pytestmark = pytest.mark.django_db


def rights_of(role: str) -> set[tuple[str, str]]:
    return set(Group.objects.get(name=role).permissions.values_list("content_type__app_label", "codename"))


def test_the_migration_and_restore_give_each_role_the_same_rights() -> None:
    migrated = {role: rights_of(role) for role in roles.RIGHTS}

    Group.objects.all().delete()
    roles.restore()

    assert {role: rights_of(role) for role in roles.RIGHTS} == migrated
    assert len(migrated[roles.ADMINISTRATOR]) == len(roles.RIGHTS[roles.ADMINISTRATOR]) + 3


def test_every_right_of_a_role_is_one_that_django_knows() -> None:
    codenames = set(Permission.objects.values_list("codename", flat=True))

    assert {right for rights in roles.RIGHTS.values() for right in rights} <= codenames


@pytest.mark.parametrize(
    ("role", "may", "may_not"),
    [
        (roles.VIEWER, "view_board", "view_evidence"),
        (roles.REVIEWER, "hold_lane", "raise_stage"),
        (roles.SPECIALIST, "view_restricted", "decide_item"),
        (roles.LEAD, "override_guardrail", "view_restricted"),
        (roles.ADMINISTRATOR, "change_lane", "view_restricted"),
        (roles.ADMINISTRATOR, "erase_evidence", "delete_lane"),
    ],
)
def test_a_role_has_its_rights_and_no_others(person: Callable[..., Person], role: str, may: str, may_not: str) -> None:
    somebody = person(role)

    assert somebody.has_perm(f"queue_core.{may}")
    assert not somebody.has_perm(f"queue_core.{may_not}")


def test_the_migrations_names_of_permissions_are_those_django_would_write() -> None:
    names = dict(Permission.objects.filter(content_type__app_label="queue_core").values_list("codename", "name"))

    assert names["view_board"] == "May see the board, lanes and jobs"
    assert names["change_lane"] == "Can change lane"
    assert names["change_modelconnection"] == "Can change model connection"


def test_role_and_code_migrations_go_back_and_forth() -> None:
    executor = MigrationExecutor(connection)
    executor.loader = MigrationLoader(connection, replace_migrations=False)  # the steps themselves, not their squash
    # The specialists' is a later migration's.
    made_there = Group.objects.exclude(name=roles.SPECIALIST)
    plan = [
        (executor.loader.graph.nodes["queue_core", name], backwards)
        for name, backwards in [
            ("0003_reason_codes", True),
            ("0002_roles", True),
            ("0002_roles", False),
            ("0003_reason_codes", False),
        ]
    ]
    before = {role: rights_of(role) for role in roles.RIGHTS}
    # Written by a later migration, from the codes, and kept for ever otherwise.
    past_the_guards()
    ReasonCodeVersion.objects.all().delete()
    state = executor.loader.project_state(("queue_core", "0003_reason_codes"))

    with connection.schema_editor(atomic=False) as editor:
        for migration, backwards in plan:
            for operation in migration.operations:
                if backwards:
                    operation.database_backwards("queue_core", editor, state, state)
                    assert not made_there.exists() or migration.name == "0003_reason_codes"
                else:
                    operation.database_forwards("queue_core", editor, state, state)

    # What a later migration gave a role is not theirs to give again.
    after = {role: rights_of(role) for role in roles.RIGHTS}
    assert all(after[role] and after[role] <= before[role] for role in roles.RIGHTS)
    assert ("queue_core", "change_reasoncode") in after[roles.ADMINISTRATOR]

"""A migration that takes long is not cut short by the limits of the site's sessions."""

from typing import Any

import pytest
from django.core.management import get_commands
from django.db import connections

from reviewboard.management.commands.migrate import without_limits

pytestmark = pytest.mark.django_db


def limits(connection: Any) -> tuple[str, str]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_setting('statement_timeout'), current_setting('idle_in_transaction_session_timeout')"
        )
        [found] = cursor.fetchall()
    return found


def test_a_session_of_the_site_has_limits_and_one_of_migrate_has_none() -> None:
    other = connections["default"].copy()
    try:
        assert limits(other) == ("30s", "30s")

        with without_limits(other):
            assert limits(other) == ("0", "0")

        assert limits(other) == limits(connections["default"]) == ("30s", "30s")
    finally:
        other.close()


def test_it_is_this_migrate_that_runs() -> None:
    assert get_commands()["migrate"] == "reviewboard"

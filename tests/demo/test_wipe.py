"""A demo that is thrown away leaves a database in which the next one can be staged."""

import pytest
from django.db import connection

from queue_core.models import Lane, ReasonCode
from reviewboard.demo import seed
from tests.factories import make_lane


@pytest.mark.django_db
def test_wipe_empties_the_demo_and_keeps_what_migrations_made() -> None:
    make_lane()
    codes = set(ReasonCode.objects.values_list("code", flat=True))

    connection.check_constraints()  # PostgreSQL empties no table while it owes a check of the same transaction
    seed.wipe()

    assert not Lane.objects.exists()
    assert set(ReasonCode.objects.values_list("code", flat=True)) == codes
    assert {"insult", "threat", "spam", "other"} <= codes
    assert {code.versions.get().title == code.title for code in ReasonCode.objects.all()} == {True}
    ReasonCode.objects.create(code="new", title="New", clause="", public_text="")

"""Rows damaged past every guard, and what one rule finds among them."""

from django.db import connection

from queue_core.ledger import rules
from queue_core.ledger.auditor import judged
from tests.factories import past_the_guards


def damage(statement: str, scene: dict[str, int]) -> None:
    past_the_guards()
    with connection.cursor() as cursor:
        cursor.execute(statement, scene)
        assert cursor.rowcount > 0, "the damage was done to no row"


def found_by(code: str) -> list[int]:
    """The keys of all rows that break the rule of this code."""
    [rule] = [rule for rule in rules() if rule.code == code]
    keys = list(rule.model._default_manager.order_by("pk").values_list("pk", flat=True))
    return [one.key for one in judged([rule], keys)]

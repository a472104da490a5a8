"""How the demo's models behave, set by the strip and by `manage.py model`, and seen by the health check at once."""

from django.db.models import QuerySet

from queue_core import health
from queue_core.clock import DATABASE_CLOCK
from queue_core.models import ModelConnection
from reviewboard.models import DemoModel

#: The kind of connection whose model can be told how to behave.
KIND = "demo"


def set_condition(connections: QuerySet[ModelConnection], condition: DemoModel.Condition) -> None:
    """From the next batch on. Workers read it at each; the health check is asked to look now, not in ten seconds."""
    now = DATABASE_CLOCK.now()
    for row in connections:
        DemoModel.objects.update_or_create(connection=row, defaults={"condition": condition, "changed_at": now})
    health.ask_now(connections)

"""What each life of a job writes into indexes that nobody looks up there.

Three unique indexes held a null of nearly every row: which decision a first one replaces, whose assignment a decision by
the model has, the number of a message that has none yet. Nulls are as distinct as before without their entries. And a
ticket's row, which each message of it numbers anew, keeps room on its page for the next version: PostgreSQL then writes
no entry of it into any index.
"""

from django.db import migrations

#: Per constraint: its table and column.
SPARSE = {
    "queue_core_decision_replaces_id_key": ("queue_core_decision", "replaces_id"),
    "queue_core_decision_assignment_id_key": ("queue_core_decision", "assignment_id"),
    "queue_core_message_number_key": ("queue_core_message", "number"),
}


def _sparse(name, table, column):
    """The new one stands before the old one goes. A half-built one of a try that was cut makes way."""
    return [
        f"DROP INDEX CONCURRENTLY IF EXISTS {name}_new",
        f"CREATE UNIQUE INDEX CONCURRENTLY {name}_new ON {table} ({column}) WHERE {column} IS NOT NULL",
        f"ALTER TABLE {table} DROP CONSTRAINT IF EXISTS {name}",
        f"DROP INDEX CONCURRENTLY IF EXISTS {name}",
        f"ALTER INDEX {name}_new RENAME TO {name}",
    ]


def _full(name, table, column):
    return [f"DROP INDEX IF EXISTS {name}", f"ALTER TABLE {table} ADD CONSTRAINT {name} UNIQUE ({column})"]


class Migration(migrations.Migration):
    atomic = False  # for indexes that are built while claims go on

    dependencies = [("queue_core", "0024_help_of_stages")]

    operations = [
        *[migrations.RunSQL(_sparse(name, *where), _full(name, *where)) for name, where in SPARSE.items()],
        migrations.RunSQL(
            "ALTER TABLE queue_core_ticket SET (fillfactor = 85)", "ALTER TABLE queue_core_ticket RESET (fillfactor)"
        ),
    ]

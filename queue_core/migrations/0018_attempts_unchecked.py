"""What the workers' path pays for at every claim and completion, and need not.

Foreign keys of the rows that are written there to the few rows of configuration that all workers share: each was
looked up and locked once a row, four times an attempt. What keeps them true without: they are written from rows locked
in the same transaction; a job's lane and a run are never deleted; and a trigger keeps what an attempt or a decision
names of the rest. And the open attempts of a lane are found in the order of their keys: a claim that knows the oldest
open one passes over all that was closed before it, however long an old snapshot keeps that in the index.
"""

import django.db.models.deletion
from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import migrations, models

NAMED = """
CREATE FUNCTION queue_core_guard_named() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  is_named boolean;
BEGIN
  EXECUTE format('SELECT EXISTS (SELECT FROM queue_core_attempt WHERE %I = $1)', TG_ARGV[0]) INTO is_named USING OLD.id;
  IF is_named THEN
    RAISE EXCEPTION '% %: attempts name it', TG_TABLE_NAME, OLD.id USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN OLD;
END $$;
CREATE TRIGGER queue_core_guard_named BEFORE DELETE ON queue_core_policy
  FOR EACH ROW EXECUTE FUNCTION queue_core_guard_named('policy_id');
CREATE TRIGGER queue_core_guard_named BEFORE DELETE ON queue_core_modelconnection
  FOR EACH ROW EXECUTE FUNCTION queue_core_guard_named('connection_id');
"""


def unchecked(to, *, null=True):
    return models.ForeignKey(
        to, django.db.models.deletion.PROTECT, null=null, related_name="+", db_index=False, db_constraint=False
    )


class Migration(migrations.Migration):
    atomic = False  # for indexes that are built while claims go on

    dependencies = [("queue_core", "0017_unknown_effects")]

    operations = [
        migrations.AlterField("attempt", "lane", unchecked("queue_core.lane", null=False)),
        migrations.AlterField("attempt", "run", unchecked("queue_core.stagerun")),
        migrations.AlterField("attempt", "policy", unchecked("queue_core.policy")),
        migrations.AlterField("attempt", "connection", unchecked("queue_core.modelconnection")),
        migrations.AlterField("decision", "lane", unchecked("queue_core.lane", null=False)),
        migrations.AlterField("decision", "policy", unchecked("queue_core.policy")),
        migrations.AlterField("decision", "run", unchecked("queue_core.stagerun")),
        migrations.AlterField("message", "lane", unchecked("queue_core.lane")),
        migrations.RunSQL(NAMED, "DROP FUNCTION queue_core_guard_named() CASCADE;"),
        AddIndexConcurrently(
            "attempt",
            models.Index(
                fields=["lane", "id"], name="attempt_open", condition=models.Q(("ended_at__isnull", True))
            ),
        ),
        RemoveIndexConcurrently("attempt", "attempt_running"),
    ]

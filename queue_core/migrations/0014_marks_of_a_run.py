"""How far a run's second half of the gate was looked after is no part of what was approved with it."""

from django.db import migrations

GUARD = """
CREATE OR REPLACE FUNCTION queue_core_guard_run() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF to_jsonb(NEW) - '{%(marks)s}'::text[] IS DISTINCT FROM to_jsonb(OLD) - '{%(marks)s}'::text[]
     OR OLD.accepted_at IS NOT NULL AND NEW.accepted_at IS DISTINCT FROM OLD.accepted_at
     OR OLD.ended_at IS NOT NULL AND (NEW.ended_at, NEW.ended_as, NEW.ended_by_id)
       IS DISTINCT FROM (OLD.ended_at, OLD.ended_as, OLD.ended_by_id) THEN
    RAISE EXCEPTION 'stage run %%: what was approved stays, and it is closed once', OLD.id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
"""
ENDS = "accepted_at,ended_at,ended_as,ended_by_id"


class Migration(migrations.Migration):
    dependencies = [("queue_core", "0013_longest_waits")]

    operations = [
        migrations.RunSQL(
            GUARD % {"marks": f"{ENDS},known_asked_at,blind_up_to"},
            GUARD % {"marks": ENDS},
        ),
    ]

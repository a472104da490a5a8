"""Acts on many jobs at once, as rows; what of them is written once; and the right to reject so."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

#: A preview is made and thrown away as a draft is. Once confirmed an act stays, and each of its ends is written once.
ACT = """
CREATE FUNCTION queue_core_guard_bulk_act() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    IF OLD.confirmed_at IS NOT NULL THEN
      RAISE EXCEPTION 'bulk act %: it is kept', OLD.id USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN OLD;
  END IF;
  IF (NEW.kind, NEW.selection, NEW.left_out, NEW.is_capped, NEW.by_id, NEW.previewed_at)
       IS DISTINCT FROM (OLD.kind, OLD.selection, OLD.left_out, OLD.is_capped, OLD.by_id, OLD.previewed_at)
     OR OLD.confirmed_at IS NOT NULL AND (NEW.confirmed_at, NEW.terms, NEW.reason, NEW.reason_code_id)
       IS DISTINCT FROM (OLD.confirmed_at, OLD.terms, OLD.reason, OLD.reason_code_id)
     OR OLD.seconded_at IS NOT NULL AND (NEW.seconded_at, NEW.seconded_by_id)
       IS DISTINCT FROM (OLD.seconded_at, OLD.seconded_by_id)
     OR OLD.begun_at IS NOT NULL AND NEW.begun_at IS DISTINCT FROM OLD.begun_at
     OR OLD.stopped_at IS NOT NULL AND (NEW.stopped_at, NEW.stopped_by_id)
       IS DISTINCT FROM (OLD.stopped_at, OLD.stopped_by_id)
     OR OLD.ended_at IS NOT NULL AND NEW.ended_at IS DISTINCT FROM OLD.ended_at THEN
    RAISE EXCEPTION 'bulk act %: it is written once', OLD.id USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER queue_core_guard_bulk_act BEFORE UPDATE OR DELETE ON queue_core_bulkact
  FOR EACH ROW EXECUTE FUNCTION queue_core_guard_bulk_act();
"""

#: An act that is confirmed gets no entry more and loses none; what a preview saw never changes.
ENTRY = """
CREATE FUNCTION queue_core_guard_bulk_entry() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP <> 'UPDATE' THEN
    IF EXISTS (
      SELECT FROM queue_core_bulkact a
      WHERE a.id = (CASE TG_OP WHEN 'DELETE' THEN OLD.act_id ELSE NEW.act_id END) AND a.confirmed_at IS NOT NULL) THEN
      RAISE EXCEPTION 'bulk act: its entries are those of the preview' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
  END IF;
  IF to_jsonb(NEW) - '{is_sample,outcome,fault,at}'::text[]
       IS DISTINCT FROM to_jsonb(OLD) - '{is_sample,outcome,fault,at}'::text[]
     OR OLD.outcome IS NOT NULL AND to_jsonb(NEW) IS DISTINCT FROM to_jsonb(OLD) THEN
    RAISE EXCEPTION 'entry of a bulk act %: it is written once', OLD.id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER queue_core_guard_bulk_entry BEFORE INSERT OR UPDATE OR DELETE ON queue_core_bulkentry
  FOR EACH ROW EXECUTE FUNCTION queue_core_guard_bulk_entry();
"""

RIGHT, NAME, ROLES = "reject_in_bulk", "May reject items in bulk, with a second person", ("administrator",)


def give_right(apps, schema_editor):
    content_type, _is_new = apps.get_model("contenttypes", "ContentType").objects.get_or_create(
        app_label="queue_core", model="bulkact"
    )
    # Made here too: Django makes permissions only after all migrations have run, and then finds this one.
    permission, _is_new = apps.get_model("auth", "Permission").objects.get_or_create(
        content_type=content_type, codename=RIGHT, defaults={"name": NAME}
    )
    for group in apps.get_model("auth", "Group").objects.filter(name__in=ROLES):
        group.permissions.add(permission)


def take_right(apps, schema_editor):
    apps.get_model("auth", "Permission").objects.filter(content_type__app_label="queue_core", codename=RIGHT).delete()


class Migration(migrations.Migration):
    dependencies = [
        ("queue_core", "0020_second_looks_and_appeals"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
    ]

    operations = [
        migrations.CreateModel(
            name="BulkAct",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("requeue", "requeue"),
                            ("pull", "take out of the machine's hands"),
                            ("move_deadlines", "move service deadlines"),
                            ("hand_over", "hand over"),
                            ("escalate", "escalate"),
                            ("reject", "reject unseen"),
                        ],
                        max_length=16,
                    ),
                ),
                ("selection", models.JSONField(help_text="what was asked for: a filter, or that rows were ticked")),
                (
                    "left_out",
                    models.JSONField(default=dict, help_text="how many of the selection were left out, by why"),
                ),
                ("is_capped", models.BooleanField(default=False)),
                ("previewed_at", models.DateTimeField()),
                ("terms", models.JSONField(default=dict)),
                ("reason", models.CharField(blank=True, default="", max_length=500)),
                ("confirmed_at", models.DateTimeField(null=True)),
                ("seconded_at", models.DateTimeField(null=True)),
                ("begun_at", models.DateTimeField(null=True)),
                ("worked_at", models.DateTimeField(null=True)),
                ("stopped_at", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField(null=True)),
                (
                    "by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "reason_code",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="queue_core.reasoncode",
                    ),
                ),
                (
                    "seconded_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "stopped_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name": "bulk act",
                "verbose_name_plural": "bulk acts",
                "permissions": [("reject_in_bulk", "May reject items in bulk, with a second person")],
            },
        ),
        migrations.CreateModel(
            name="BulkEntry",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("place", models.PositiveIntegerField()),
                ("fence", models.BigIntegerField()),
                ("item_fence", models.BigIntegerField(null=True)),
                ("deadline", models.DateTimeField()),
                ("severity", models.PositiveSmallIntegerField()),
                ("is_sample", models.BooleanField(db_default=False, default=False)),
                (
                    "outcome",
                    models.CharField(
                        choices=[
                            ("done", "done"),
                            ("changed", "changed since the preview: left as it is"),
                            ("taken", "somebody has it: left to them"),
                            ("not_allowed", "not possible in its state"),
                            ("moved_before", "its deadline was moved before: not moved again"),
                            ("not_later", "its own deadline is later already"),
                            ("too_late", "the new deadline passed before its turn came"),
                            ("hands_full", "the person holds as many items as allowed"),
                            ("no_right", "the right to it was lost meanwhile"),
                            ("failed", "failed: nothing was changed"),
                            ("sampled", "in the sample: decided by a person for itself"),
                            ("stopped", "stopped before its turn"),
                        ],
                        max_length=16,
                        null=True,
                    ),
                ),
                ("fault", models.CharField(blank=True, db_default="", default="", max_length=200)),
                ("at", models.DateTimeField(null=True)),
                (
                    "act",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="entries",
                        to="queue_core.bulkact",
                    ),
                ),
                (
                    "item",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="queue_core.item",
                    ),
                ),
                (
                    "job",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="queue_core.job",
                    ),
                ),
            ],
            options={
                "verbose_name": "entry of a bulk act",
                "verbose_name_plural": "entries of bulk acts",
            },
        ),
        migrations.AddIndex(
            model_name="bulkact",
            index=models.Index(
                condition=models.Q(("confirmed_at__isnull", False), ("ended_at__isnull", True)),
                fields=["id"],
                name="bulk_act_under_way",
            ),
        ),
        migrations.AddIndex(
            model_name="bulkact",
            index=models.Index(
                condition=models.Q(("confirmed_at__isnull", True)), fields=["previewed_at"], name="bulk_act_preview"
            ),
        ),
        migrations.AddConstraint(
            model_name="bulkact",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("begun_at__isnull", True),
                        ("confirmed_at__isnull", True),
                        ("stopped_at__isnull", True),
                        ("ended_at__isnull", True),
                    ),
                    models.Q(("confirmed_at__isnull", False), models.Q(("reason", ""), _negated=True)),
                    _connector="OR",
                ),
                name="bulk_act_with_a_reason_when_confirmed",
            ),
        ),
        migrations.AddConstraint(
            model_name="bulkact",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("stopped_at__isnull", True), ("stopped_by__isnull", True)),
                    models.Q(("stopped_at__isnull", False), ("stopped_by__isnull", False)),
                    _connector="OR",
                ),
                name="bulk_act_stopped_by_somebody",
            ),
        ),
        migrations.AddConstraint(
            model_name="bulkact",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("seconded_at__isnull", True), ("seconded_by__isnull", True)),
                    models.Q(
                        ("confirmed_at__isnull", False),
                        ("seconded_at__isnull", False),
                        ("seconded_by__isnull", False),
                        models.Q(("seconded_by", models.F("by")), _negated=True),
                    ),
                    _connector="OR",
                ),
                name="bulk_act_seconded_by_another",
            ),
        ),
        migrations.AddConstraint(
            model_name="bulkact",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("kind", "reject"), _negated=True),
                    ("confirmed_at__isnull", True),
                    models.Q(
                        ("reason_code__isnull", False),
                        models.Q(("begun_at__isnull", True), ("seconded_at__isnull", False), _connector="OR"),
                    ),
                    _connector="OR",
                ),
                name="bulk_act_rejects_with_a_ground_and_a_second",
            ),
        ),
        migrations.AddIndex(
            model_name="bulkentry",
            index=models.Index(
                condition=models.Q(("outcome__isnull", True)), fields=["act", "place"], name="bulk_entry_pending"
            ),
        ),
        migrations.AddConstraint(
            model_name="bulkentry",
            constraint=models.UniqueConstraint(fields=("act", "place"), name="bulk_entry_once_a_place"),
        ),
        migrations.AddConstraint(
            model_name="bulkentry",
            constraint=models.UniqueConstraint(fields=("act", "job"), name="bulk_entry_once_a_job"),
        ),
        migrations.AddConstraint(
            model_name="bulkentry",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("item__isnull", True), ("item_fence__isnull", True)),
                    models.Q(("item__isnull", False), ("item_fence__isnull", False)),
                    _connector="OR",
                ),
                name="bulk_entry_item_with_its_fence",
            ),
        ),
        migrations.AddConstraint(
            model_name="bulkentry",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("at__isnull", True), ("outcome__isnull", True)),
                    models.Q(("at__isnull", False), ("outcome__isnull", False)),
                    _connector="OR",
                ),
                name="bulk_entry_time_when_done",
            ),
        ),
        migrations.RunSQL(ACT, "DROP FUNCTION queue_core_guard_bulk_act() CASCADE;"),
        migrations.RunSQL(ENTRY, "DROP FUNCTION queue_core_guard_bulk_entry() CASCADE;"),
        migrations.RunPython(give_right, take_right),
    ]

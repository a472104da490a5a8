"""Uploaded files of tickets: their runs, parts and refused lines; the right to them; and a run that ends once."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

#: How often refused lines are forgotten is no part of what a run was.
ENDED = """
CREATE TRIGGER queue_core_guard_import BEFORE UPDATE ON queue_core_importrun
  FOR EACH ROW WHEN (
    OLD.ended_at IS NOT NULL AND to_jsonb(NEW.*) - 'is_emptied' IS DISTINCT FROM to_jsonb(OLD.*) - 'is_emptied')
  EXECUTE FUNCTION queue_core_refuse('it has ended');
"""
ROLES = ("lead", "administrator")
RIGHT = "import_tickets"


def give_right(apps, schema_editor):
    content_type, _is_new = apps.get_model("contenttypes", "ContentType").objects.get_or_create(
        app_label="queue_core", model="importrun"
    )
    # Made here too: Django makes permissions only after all migrations have run, and then finds this one.
    permission, _is_new = apps.get_model("auth", "Permission").objects.get_or_create(
        content_type=content_type, codename=RIGHT, defaults={"name": "Can import files of tickets"}
    )
    for group in apps.get_model("auth", "Group").objects.filter(name__in=ROLES):
        group.permissions.add(permission)


def take_right(apps, schema_editor):
    permissions = apps.get_model("auth", "Permission").objects.filter(
        content_type__app_label="queue_core", codename=RIGHT
    )
    for group in apps.get_model("auth", "Group").objects.filter(name__in=ROLES):
        group.permissions.remove(*permissions)


class Migration(migrations.Migration):
    dependencies = [
        ("queue_core", "0022_api_keys"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="ImportRun",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=200)),
                ("kind", models.CharField(max_length=6)),
                ("encoding", models.CharField(max_length=40)),
                ("size", models.BigIntegerField()),
                ("digest", models.CharField(max_length=64)),
                ("source", models.CharField(max_length=64)),
                ("revision", models.CharField(blank=True, max_length=64)),
                ("delimiter", models.CharField(blank=True, max_length=1)),
                ("mapping", models.JSONField(db_default=models.Value({}, models.JSONField()), default=dict)),
                ("header", models.JSONField(null=True)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("uploaded", "uploaded"),
                            ("checking", "dry run"),
                            ("checked", "tried dry"),
                            ("importing", "importing"),
                            ("done", "imported"),
                            ("stopped", "stopped"),
                            ("discarded", "discarded"),
                            ("failed", "failed"),
                        ],
                        max_length=9,
                    ),
                ),
                ("uploaded_at", models.DateTimeField()),
                ("asked_at", models.DateTimeField()),
                ("taken_at", models.DateTimeField(null=True)),
                ("moved_at", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField(null=True)),
                ("held_by", models.CharField(blank=True, max_length=200)),
                ("held_until", models.DateTimeField(null=True)),
                ("takes", models.PositiveSmallIntegerField(db_default=0, default=0)),
                ("place", models.BigIntegerField(db_default=0, default=0)),
                ("line", models.BigIntegerField(db_default=0, default=0)),
                ("counts", models.JSONField(db_default=models.Value({}, models.JSONField()), default=dict)),
                ("foretold", models.JSONField(null=True)),
                ("fault", models.CharField(blank=True, max_length=500)),
                ("is_emptied", models.BooleanField(db_default=False, default=False)),
                (
                    "by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "lane",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="queue_core.lane",
                    ),
                ),
            ],
            options={
                "verbose_name": "import of tickets",
                "verbose_name_plural": "imports of tickets",
                "permissions": [("import_tickets", "Can import files of tickets")],
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="ImportRefusal",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("line", models.BigIntegerField()),
                ("field", models.CharField(blank=True, max_length=64)),
                ("reason", models.TextField()),
                ("outcome", models.CharField(max_length=20)),
                ("raw", models.BinaryField(null=True)),
                (
                    "run",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="refusals",
                        to="queue_core.importrun",
                    ),
                ),
            ],
            options={
                "verbose_name": "refused line",
                "verbose_name_plural": "refused lines",
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="ImportPart",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveIntegerField()),
                ("content", models.BinaryField()),
                (
                    "run",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="parts",
                        to="queue_core.importrun",
                    ),
                ),
            ],
            options={
                "verbose_name": "part of a file",
                "verbose_name_plural": "parts of files",
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="ImportForeseen",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=32)),
                ("current", models.CharField(max_length=200)),
                ("revisions", models.JSONField()),
                (
                    "run",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="foreseen",
                        to="queue_core.importrun",
                    ),
                ),
            ],
            options={
                "verbose_name": "ticket foreseen by a dry run",
                "verbose_name_plural": "tickets foreseen by a dry run",
                "default_permissions": (),
            },
        ),
        migrations.AddIndex(
            model_name="importrun",
            index=models.Index(condition=models.Q(("ended_at__isnull", True)), fields=["id"], name="import_open"),
        ),
        migrations.AddIndex(
            model_name="importrun",
            index=models.Index(condition=models.Q(("is_emptied", False)), fields=["id"], name="import_full"),
        ),
        migrations.AddIndex(
            model_name="importrun",
            index=models.Index(fields=["by", "-id"], name="import_by"),
        ),
        migrations.AddConstraint(
            model_name="importrun",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("ended_at__isnull", False), ("state__in", ("done", "stopped", "discarded", "failed"))),
                    models.Q(
                        models.Q(("state__in", ("done", "stopped", "discarded", "failed")), _negated=True),
                        ("ended_at__isnull", True),
                    ),
                    _connector="OR",
                ),
                name="import_ended_has_its_time",
            ),
        ),
        migrations.AddConstraint(
            model_name="importrun",
            constraint=models.CheckConstraint(
                condition=models.Q(("place__gte", 0), ("place__lte", models.F("size"))), name="import_within_file"
            ),
        ),
        migrations.AddConstraint(
            model_name="importrefusal",
            constraint=models.UniqueConstraint(fields=("run", "line"), name="import_refusal_once_a_line"),
        ),
        migrations.AddConstraint(
            model_name="importpart",
            constraint=models.UniqueConstraint(fields=("run", "number"), name="import_part_once"),
        ),
        migrations.AddConstraint(
            model_name="importforeseen",
            constraint=models.UniqueConstraint(fields=("run", "name"), name="import_foreseen_once"),
        ),
        migrations.RunSQL(ENDED, "DROP TRIGGER queue_core_guard_import ON queue_core_importrun;"),
        migrations.RunPython(give_right, take_right),
    ]

"""Keys of machines, and the audit of what they do. The role lists are a copy of what roles.py says now."""

import django.core.validators
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import queue_core.models.lanes

#: A key is what it was made as, revoked at most once, and kept for the audit that names it.
GUARD = """
CREATE FUNCTION queue_core_guard_apikey() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (NEW.prefix, NEW.digest, NEW.made_at, NEW.made_by_id)
       IS DISTINCT FROM (OLD.prefix, OLD.digest, OLD.made_at, OLD.made_by_id)
     OR OLD.revoked_at IS NOT NULL
       AND (NEW.revoked_at, NEW.revoked_by_id) IS DISTINCT FROM (OLD.revoked_at, OLD.revoked_by_id) THEN
    RAISE EXCEPTION 'API key %: it is made once and revoked once', OLD.id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER queue_core_guard_apikey BEFORE UPDATE ON queue_core_apikey
  FOR EACH ROW EXECUTE FUNCTION queue_core_guard_apikey();
CREATE TRIGGER queue_core_guard_kept BEFORE DELETE ON queue_core_apikey
  FOR EACH ROW EXECUTE FUNCTION queue_core_guard_kept();
"""

RIGHTS = {"view_apikey": "Can view API key", "add_apikey": "Can add API key", "change_apikey": "Can change API key"}


def give(apps, schema_editor):
    content_type, _is_new = apps.get_model("contenttypes", "ContentType").objects.get_or_create(
        app_label="queue_core", model="apikey"
    )
    for codename, name in RIGHTS.items():
        # Made here too: Django makes permissions only after all migrations have run, and then finds these.
        permission, _is_new = apps.get_model("auth", "Permission").objects.get_or_create(
            content_type=content_type, codename=codename, defaults={"name": name}
        )
        for group in apps.get_model("auth", "Group").objects.filter(name="administrator"):
            group.permissions.add(permission)


def take(apps, schema_editor):
    permissions = apps.get_model("auth", "Permission").objects.filter(
        content_type__app_label="queue_core", codename__in=RIGHTS
    )
    for group in apps.get_model("auth", "Group").objects.filter(name="administrator"):
        group.permissions.remove(*permissions)


class Migration(migrations.Migration):
    dependencies = [
        ("queue_core", "0021_bulk_acts"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="ApiKey",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "name",
                    models.CharField(
                        max_length=64,
                        unique=True,
                        validators=[queue_core.models.lanes.name_validator],
                        verbose_name="name",
                    ),
                ),
                ("prefix", models.CharField(editable=False, max_length=16, unique=True, verbose_name="begins with")),
                ("digest", models.CharField(editable=False, max_length=64)),
                ("scopes", models.JSONField(default=list, verbose_name="scopes")),
                (
                    "source",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text="The key sends and reads tickets of this source only. Empty: of any, which each call names.",
                        max_length=64,
                        verbose_name="source",
                    ),
                ),
                (
                    "lanes",
                    models.JSONField(
                        blank=True, default=list, help_text="None chosen: all lanes.", verbose_name="lanes"
                    ),
                ),
                (
                    "rate",
                    models.PositiveIntegerField(
                        default=1200,
                        help_text="A call that sends many tickets at once is one call.",
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(60000),
                        ],
                        verbose_name="calls per minute",
                    ),
                ),
                (
                    "expires_at",
                    models.DateTimeField(
                        blank=True, help_text="Empty: it does not.", null=True, verbose_name="expires"
                    ),
                ),
                ("version", models.PositiveIntegerField(default=1, editable=False)),
                ("made_at", models.DateTimeField(editable=False, verbose_name="made")),
                ("revoked_at", models.DateTimeField(editable=False, null=True, verbose_name="revoked")),
                (
                    "made_by",
                    models.ForeignKey(
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="made by",
                    ),
                ),
                (
                    "revoked_by",
                    models.ForeignKey(
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="revoked by",
                    ),
                ),
            ],
            options={
                "verbose_name": "API key",
                "verbose_name_plural": "API keys",
                "ordering": ["name"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("rate__gte", 1), ("rate__lte", 60000)),
                        name="apikey_rate_in_bounds",
                        violation_error_message="A key may make 1 to 60,000 calls per minute.",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("name", ""), _negated=True),
                            models.Q(("prefix", ""), _negated=True),
                            models.Q(("digest", ""), _negated=True),
                        ),
                        name="apikey_is_named",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ApiKeyUse",
            fields=[
                (
                    "key",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="use",
                        serialize=False,
                        to="queue_core.apikey",
                    ),
                ),
                ("free_at", models.DateTimeField()),
                ("last_used_at", models.DateTimeField(null=True)),
                ("last_address", models.GenericIPAddressField(null=True)),
            ],
            options={
                "verbose_name": "use of an API key",
                "verbose_name_plural": "uses of API keys",
            },
        ),
        # Half of each page stays free, so that a call's write finds room beside the row and touches no index.
        migrations.RunSQL("ALTER TABLE queue_core_apikeyuse SET (fillfactor = 50)", migrations.RunSQL.noop),
        migrations.AddField(
            model_name="auditentry",
            name="key",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="queue_core.apikey",
            ),
        ),
        migrations.AddField(
            model_name="endpoint",
            name="changed_state_key",
            field=models.ForeignKey(
                editable=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="queue_core.apikey",
            ),
        ),
        migrations.AddConstraint(
            model_name="auditentry",
            constraint=models.CheckConstraint(
                condition=models.Q(("actor__isnull", True), ("key__isnull", True), _connector="OR"),
                name="audit_by_a_person_or_a_key",
            ),
        ),
        migrations.RunSQL(GUARD, "DROP FUNCTION queue_core_guard_apikey() CASCADE;"),
        migrations.RunPython(give, take),
    ]

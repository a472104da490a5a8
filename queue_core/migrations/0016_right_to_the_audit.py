"""Leads and administrators read the audit. A copy of what roles.py says now."""

from django.db import migrations

ROLES = ("lead", "administrator")
RIGHT = "view_auditentry"


def give(apps, schema_editor):
    content_type, _is_new = apps.get_model("contenttypes", "ContentType").objects.get_or_create(
        app_label="queue_core", model="auditentry"
    )
    # Made here too: Django makes permissions only after all migrations have run, and then finds this one.
    permission, _is_new = apps.get_model("auth", "Permission").objects.get_or_create(
        content_type=content_type, codename=RIGHT, defaults={"name": "Can view audit entry"}
    )
    for group in apps.get_model("auth", "Group").objects.filter(name__in=ROLES):
        group.permissions.add(permission)


def take(apps, schema_editor):
    permissions = apps.get_model("auth", "Permission").objects.filter(
        content_type__app_label="queue_core", codename=RIGHT
    )
    for group in apps.get_model("auth", "Group").objects.filter(name__in=ROLES):
        group.permissions.remove(*permissions)


class Migration(migrations.Migration):
    dependencies = [("queue_core", "0015_attempts_left")]

    operations = [migrations.RunPython(give, take)]

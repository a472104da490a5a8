"""The four roles as groups. Permissions are made here too: Django makes them only after all migrations have run."""

from django.conf import settings
from django.db import migrations

VIEWER = ["view_board"]
REVIEWER = [*VIEWER, "view_evidence", "decide_item", "requeue_item", "pull_job", "hold_lane"]
LEAD = [*REVIEWER, "raise_stage", "override_guardrail", "force_policy", "move_deadlines", "manage_outage"]
#: Of the admin: the model's app and name, and what may be done with it.
ADMIN = [
    ("queue_core", "lane", ["view", "add", "change"]),
    ("queue_core", "stage", ["view", "add", "change", "delete"]),
    ("queue_core", "modelconnection", ["view", "add", "change"]),
    ("queue_core", "policy", ["view", "add"]),
    ("queue_core", "reasoncode", ["view", "add", "change"]),
    (*settings.AUTH_USER_MODEL.lower().split("."), ["view", "add", "change"]),
]
ROLES = {"viewer": VIEWER, "reviewer": REVIEWER, "lead": LEAD, "administrator": LEAD}


def make_roles(apps, schema_editor):
    Group = apps.get_model("auth", "Group")
    for role, rights in ROLES.items():
        group, _is_new = Group.objects.get_or_create(name=role)
        group.permissions.add(*[_permission(apps, "queue_core", "lane", right) for right in rights])
    administrator = Group.objects.get(name="administrator")
    for app, model, acts in ADMIN:
        administrator.permissions.add(*[_permission(apps, app, model, f"{act}_{model}") for act in acts])


def remove_roles(apps, schema_editor):
    """Groups only: Django itself keeps the permissions as long as their models are there."""
    apps.get_model("auth", "Group").objects.filter(name__in=ROLES).delete()


def _permission(apps, app, model, codename):
    ContentType = apps.get_model("contenttypes", "ContentType")
    Permission = apps.get_model("auth", "Permission")
    content_type, _is_new = ContentType.objects.get_or_create(app_label=app, model=model)
    # Django's own step after the migrations finds these by content type and codename, and leaves them.
    name = _names(apps, app, model).get(codename, codename)
    permission, _is_new = Permission.objects.get_or_create(
        content_type=content_type, codename=codename, defaults={"name": name}
    )
    return permission


def _names(apps, app, model):
    """Each right's name as Django would write it: the model's own, and its four usual ones."""
    options = apps.get_model(app, model)._meta
    usual = {f"{act}_{model}": f"Can {act} {options.verbose_name_raw}" for act in ("add", "change", "delete", "view")}
    return usual | {codename: str(name) for codename, name in options.permissions}


class Migration(migrations.Migration):
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
        ("queue_core", "0001_initial"),
    ]

    operations = [migrations.RunPython(make_roles, remove_roles)]

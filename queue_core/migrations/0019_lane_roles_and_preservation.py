"""Roles on one lane; restricted evidence, reports of it and preservation holds, with a role and rights of their own."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

WRITTEN_ONCE = """
CREATE FUNCTION queue_core_guard_preservation() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (NEW.ticket_id, NEW.authority, NEW.reference, NEW.reason, NEW.placed_at, NEW.placed_by_id, NEW.until)
     IS DISTINCT FROM
     (OLD.ticket_id, OLD.authority, OLD.reference, OLD.reason, OLD.placed_at, OLD.placed_by_id, OLD.until)
     OR OLD.lifted_at IS NOT NULL AND (NEW.lifted_at, NEW.lifted_by_id, NEW.lifted_reason)
       IS DISTINCT FROM (OLD.lifted_at, OLD.lifted_by_id, OLD.lifted_reason) THEN
    RAISE EXCEPTION 'preservation hold %: it is lifted once, and stays as it was placed', OLD.id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER queue_core_guard_preservation BEFORE UPDATE ON queue_core_preservationhold
  FOR EACH ROW EXECUTE FUNCTION queue_core_guard_preservation();
CREATE TRIGGER queue_core_guard_report BEFORE UPDATE ON queue_core_evidencereport
  FOR EACH ROW EXECUTE FUNCTION queue_core_refuse('it is written once');
CREATE TRIGGER queue_core_guard_erased BEFORE UPDATE ON queue_core_evidence
  FOR EACH ROW WHEN (
    OLD.erased_at IS NOT NULL AND
    (NEW.body, NEW.digest, NEW.erased_at, NEW.erased_ground)
      IS DISTINCT FROM (OLD.body, OLD.digest, OLD.erased_at, OLD.erased_ground))
  EXECUTE FUNCTION queue_core_refuse('it is erased once');
"""
WRITTEN_AGAIN = """
DROP TRIGGER queue_core_guard_erased ON queue_core_evidence;
DROP TRIGGER queue_core_guard_report ON queue_core_evidencereport;
DROP TRIGGER queue_core_guard_preservation ON queue_core_preservationhold;
DROP FUNCTION queue_core_guard_preservation();
"""
KEPT = ("preservationhold", "evidencereport")
KEEP = "".join(
    f"CREATE TRIGGER queue_core_guard_kept BEFORE DELETE ON queue_core_{table}"
    " FOR EACH ROW EXECUTE FUNCTION queue_core_guard_kept();\n"
    for table in KEPT
)
KEEP_NO_MORE = "".join(f"DROP TRIGGER queue_core_guard_kept ON queue_core_{table};\n" for table in KEPT)

#: A copy of what roles.py says now of the rights that are new, and of the role that is.
RIGHTS = {
    "view_restricted": "May see restricted evidence, for a stated purpose",
    "report_evidence": "May report restricted evidence to an authority",
    "preserve_evidence": "May place and lift preservation holds",
    "erase_evidence": "May erase content on a stated ground",
}
GIVEN = {
    "specialist": ("view_board", "view_evidence", "view_restricted", "report_evidence", "preserve_evidence"),
    "administrator": ("preserve_evidence", "erase_evidence"),
}


def give(apps, schema_editor):
    content_type, _is_new = apps.get_model("contenttypes", "ContentType").objects.get_or_create(
        app_label="queue_core", model="lane"
    )
    Permission = apps.get_model("auth", "Permission")
    # Made here too: Django makes permissions only after all migrations have run, and then finds these.
    for codename, name in RIGHTS.items():
        Permission.objects.get_or_create(content_type=content_type, codename=codename, defaults={"name": name})
    for role, rights in GIVEN.items():
        group, _is_new = apps.get_model("auth", "Group").objects.get_or_create(name=role)
        group.permissions.add(*Permission.objects.filter(content_type=content_type, codename__in=rights))


def take(apps, schema_editor):
    """The rights from the roles, and the role that only these make. Django keeps the permissions themselves."""
    Permission = apps.get_model("auth", "Permission")
    new = Permission.objects.filter(content_type__app_label="queue_core", codename__in=RIGHTS)
    for group in apps.get_model("auth", "Group").objects.filter(name__in=GIVEN):
        group.permissions.remove(*new)
    apps.get_model("auth", "Group").objects.filter(name="specialist").delete()


def _person(name, *, null=False):
    return models.ForeignKey(
        settings.AUTH_USER_MODEL, django.db.models.deletion.PROTECT, null=null, related_name=name, db_index=False
    )


class Migration(migrations.Migration):
    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("queue_core", "0018_attempts_unchecked"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="lane",
            options={
                "ordering": ["name"],
                "permissions": [
                    ("view_board", "May see the board, lanes and jobs"),
                    ("view_evidence", "May read evidence"),
                    ("decide_item", "May take and decide items"),
                    ("requeue_item", "May requeue DEAD jobs"),
                    ("pull_job", "May take waiting jobs out of the machine's hands"),
                    ("hold_lane", "May put a lane on hold"),
                    ("raise_stage", "May raise, resume and step down stages"),
                    ("override_guardrail", "May raise past an unmet soak or guardrail, with a reason"),
                    ("force_policy", "May put a policy into force"),
                    ("move_deadlines", "May move service deadlines"),
                    ("manage_outage", "May open, keep and close the record of an outage"),
                    ("recall_decision", "May recall decisions of the model"),
                    ("view_restricted", "May see restricted evidence, for a stated purpose"),
                    ("report_evidence", "May report restricted evidence to an authority"),
                    ("preserve_evidence", "May place and lift preservation holds"),
                    ("erase_evidence", "May erase content on a stated ground"),
                ],
                "verbose_name": "lane",
                "verbose_name_plural": "lanes",
            },
        ),
        migrations.CreateModel(
            name="LaneRole",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "person",
                    models.ForeignKey(
                        settings.AUTH_USER_MODEL, django.db.models.deletion.PROTECT, related_name="lane_roles",
                        db_index=False, verbose_name="person",
                    ),
                ),
                (
                    "role",
                    models.ForeignKey(
                        "auth.group", django.db.models.deletion.PROTECT, related_name="+", verbose_name="role"
                    ),
                ),
                (
                    "lane",
                    models.ForeignKey(
                        "queue_core.lane", django.db.models.deletion.PROTECT, related_name="+", verbose_name="lane"
                    ),
                ),
            ],
            options={
                "verbose_name": "role on a lane",
                "verbose_name_plural": "roles on lanes",
                "constraints": [
                    models.UniqueConstraint(fields=("person", "lane", "role"), name="lane_role_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="PreservationHold",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "ticket",
                    models.ForeignKey(
                        "queue_core.ticket", django.db.models.deletion.PROTECT, related_name="preservation_holds",
                        db_index=False,
                    ),
                ),
                ("authority", models.CharField(max_length=120)),
                ("reference", models.CharField(max_length=120)),
                ("reason", models.CharField(max_length=500)),
                ("placed_at", models.DateTimeField()),
                ("placed_by", _person("+")),
                ("until", models.DateTimeField()),
                ("lifted_at", models.DateTimeField(null=True)),
                ("lifted_by", _person("+", null=True)),
                ("lifted_reason", models.CharField(blank=True, db_default="", default="", max_length=500)),
            ],
            options={
                "verbose_name": "preservation hold",
                "verbose_name_plural": "preservation holds",
                "indexes": [models.Index(fields=["ticket", "-id"], name="preservation_ticket")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("until__gt", models.F("placed_at"))),
                        name="preservation_ends_after_it_begins",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("lifted_at__isnull", True), ("lifted_by__isnull", True), ("lifted_reason", "")),
                            models.Q(
                                ("lifted_at__isnull", False),
                                ("lifted_by__isnull", False),
                                models.Q(("lifted_reason", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="preservation_lifted_by_somebody_who_says_why",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="EvidenceReport",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "evidence",
                    models.ForeignKey(
                        "queue_core.evidence", django.db.models.deletion.PROTECT, related_name="reports"
                    ),
                ),
                ("authority", models.CharField(max_length=120)),
                ("reference", models.CharField(max_length=120)),
                ("reported_at", models.DateTimeField()),
                ("reported_by", _person("+")),
            ],
            options={
                "verbose_name": "report to an authority",
                "verbose_name_plural": "reports to authorities",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("evidence", "authority", "reference"), name="evidence_report_once"
                    )
                ],
            },
        ),
        migrations.RunSQL(WRITTEN_ONCE, WRITTEN_AGAIN),
        migrations.RunSQL(KEEP, KEEP_NO_MORE),
        migrations.RunPython(give, take),
    ]

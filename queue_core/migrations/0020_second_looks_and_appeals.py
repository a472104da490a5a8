"""People's work goes on: items skipped, handed over, escalated; second looks, corrections, appeals; decisions taken back.

Reason codes keep what each version said, and may be for some lanes only, ask for a note or for a second look.
"""

import django.core.validators
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


def _payload_may_go(table, name, payload, says):
    """A trigger for rows that are written once, of which an erasure may blank one text."""
    return f"""
CREATE FUNCTION queue_core_guard_{name}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF to_jsonb(NEW) - '{payload}' IS DISTINCT FROM to_jsonb(OLD) - '{payload}' OR NEW.{payload} NOT IN (OLD.{payload}, '') THEN
    RAISE EXCEPTION '{says} %: it is written once', OLD.id USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER queue_core_guard_{name} BEFORE UPDATE ON queue_core_{table}
  FOR EACH ROW EXECUTE FUNCTION queue_core_guard_{name}();
"""


GUARDS = {
    "item_pass": _payload_may_go("itempass", "item_pass", "reason", "passing on of an item"),
    "second_look": _payload_may_go("secondlook", "second_look", "note", "second look"),
    "appeal": _payload_may_go("appeal", "appeal", "statement", "appeal"),
}
#: What the author of a content was told stays as it was.
VERSIONS = """
CREATE TRIGGER queue_core_guard_ground_version BEFORE UPDATE ON queue_core_reasoncodeversion
  FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION queue_core_refuse('it is written once');
"""
KEPT = ("itempass", "secondlook", "appeal", "reasoncodeversion")
KEEP = "".join(
    f"CREATE TRIGGER queue_core_guard_kept BEFORE DELETE ON queue_core_{table}"
    " FOR EACH ROW EXECUTE FUNCTION queue_core_guard_kept();\n"
    for table in KEPT
)
FILL_VERSIONS = """
INSERT INTO queue_core_reasoncodeversion (ground_id, version, title, clause, public_text)
SELECT id, version, title, clause, public_text FROM queue_core_reasoncode
"""

#: The rights with their names as Django would write them, and whose they are: a copy of what roles.py says now.
RIGHTS = {
    "lead_desk": (
        "May decide what was escalated, correct decisions and see the desk's figures", ("lead", "administrator")
    ),
    "view_person_figures": ("May see the desk's figures per person", ("administrator",)),
    "appeal_decision": ("May enter an appeal against a decision", ("reviewer", "lead", "administrator")),
}


def give_rights(apps, schema_editor):
    content_type, _is_new = apps.get_model("contenttypes", "ContentType").objects.get_or_create(
        app_label="queue_core", model="item"
    )
    Permission, Group = apps.get_model("auth", "Permission"), apps.get_model("auth", "Group")
    for codename, (name, roles) in RIGHTS.items():
        permission, _is_new = Permission.objects.get_or_create(
            content_type=content_type, codename=codename, defaults={"name": name}
        )
        for group in Group.objects.filter(name__in=roles):
            group.permissions.add(permission)


def take_rights(apps, schema_editor):
    permissions = apps.get_model("auth", "Permission").objects.filter(
        content_type__app_label="queue_core", codename__in=list(RIGHTS)
    )
    for group in apps.get_model("auth", "Group").objects.all():
        group.permissions.remove(*permissions)


class Migration(migrations.Migration):
    dependencies = [
        ("queue_core", "0019_lane_roles_and_preservation"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Appeal',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('statement', models.TextField(blank=True, default='', max_length=4000)),
                ('received_at', models.DateTimeField()),
            ],
            options={
                'verbose_name': 'appeal',
                'verbose_name_plural': 'appeals',
            },
        ),
        migrations.CreateModel(
            name='ItemPass',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('passed_as', models.CharField(choices=[('skipped', 'skipped'), ('handed_over', 'handed over'), ('escalated', 'escalated to a lead')], max_length=12)),
                ('reason', models.TextField(blank=True, default='', max_length=500)),
                ('at', models.DateTimeField()),
            ],
            options={
                'verbose_name': 'passing on of an item',
                'verbose_name_plural': 'items passed on',
            },
        ),
        migrations.CreateModel(
            name='ReasonCodeVersion',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('version', models.PositiveIntegerField()),
                ('title', models.CharField(max_length=120)),
                ('clause', models.CharField(blank=True, default='', max_length=200)),
                ('public_text', models.TextField(blank=True, default='', max_length=2000)),
                ('made_at', models.DateTimeField(help_text='None: from before versions were kept.', null=True)),
            ],
            options={
                'verbose_name': 'version of a reason code',
                'verbose_name_plural': 'versions of reason codes',
            },
        ),
        migrations.CreateModel(
            name='SecondLook',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('verdict', models.CharField(choices=[('APPROVED', 'approved'), ('REJECTED', 'rejected')], max_length=8)),
                ('note', models.TextField(blank=True, default='', max_length=4000)),
                ('agrees', models.BooleanField()),
                ('looked_at', models.DateTimeField()),
            ],
            options={
                'verbose_name': 'second look',
                'verbose_name_plural': 'second looks',
            },
        ),
        migrations.AlterModelOptions(
            name='item',
            options={'permissions': [('lead_desk', "May decide what was escalated, correct decisions and see the desk's figures"), ('view_person_figures', "May see the desk's figures per person"), ('appeal_decision', 'May enter an appeal against a decision')], 'verbose_name': 'item', 'verbose_name_plural': 'items'},
        ),
        migrations.RemoveConstraint(
            model_name='decision',
            name='decision_by_one_attempt_or_one_person',
        ),
        migrations.AddField(
            model_name='decision',
            name='reason_version',
            field=models.PositiveIntegerField(help_text="The reason code's, when a person decided by it. The model's follows from the time.", null=True),
        ),
        migrations.AddField(
            model_name='item',
            name='for_leads',
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name='lane',
            name='most_held',
            field=models.PositiveSmallIntegerField(db_default=5, default=5, help_text='Whoever holds so many items already, of any lane, takes none of this one.', validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(100)], verbose_name='items a person may hold'),
        ),
        migrations.AddField(
            model_name='lane',
            name='second_look_share',
            field=models.FloatField(db_default=0.0, default=0.0, help_text="Of people's decisions, drawn by chance: 0.1 is one in ten. Another person decides anew, unseen.", validators=[django.core.validators.MinValueValidator(0.0), django.core.validators.MaxValueValidator(1.0)], verbose_name='share looked at twice'),
        ),
        migrations.AddField(
            model_name='message',
            name='not_before',
            field=models.DateTimeField(help_text='Until then whoever decided may take it back: the relay gives it no number.', null=True),
        ),
        migrations.AddField(
            model_name='reasoncode',
            name='lanes',
            field=models.JSONField(blank=True, db_default=models.Value([], models.JSONField()), default=list, help_text='None chosen: all lanes.', verbose_name='lanes'),
        ),
        migrations.AddField(
            model_name='reasoncode',
            name='needs_note',
            field=models.BooleanField(db_default=False, default=False, help_text='Nobody decides by this code without saying more.', verbose_name='needs a note'),
        ),
        migrations.AddField(
            model_name='reasoncode',
            name='needs_second_look',
            field=models.BooleanField(db_default=False, default=False, help_text='Each decision of a person by this code is looked at by another one.', verbose_name='needs a second look'),
        ),
        migrations.AlterField(
            model_name='assignment',
            name='ended_as',
            field=models.CharField(choices=[('decided', 'decided'), ('requeued', 'requeued'), ('given_back', 'given back'), ('handed_over', 'handed over'), ('expired', 'time was over'), ('item_closed', 'item closed'), ('checked', 'checked'), ('skipped', 'skipped'), ('escalated', 'escalated to a lead')], max_length=12, null=True),
        ),
        migrations.AlterField(
            model_name='decision',
            name='why',
            field=models.CharField(choices=[('first', 'first decision'), ('second_look', 'second look'), ('correction', 'correction'), ('appeal', 'appeal'), ('recall', 'recall'), ('taken_back', 'taken back')], db_default='first', default='first', max_length=12),
        ),
        migrations.AlterField(
            model_name='item',
            name='closed_as',
            field=models.CharField(choices=[('decided', 'decided'), ('requeued', 'requeued'), ('superseded', 'superseded'), ('withdrawn', 'withdrawn'), ('checked', 'checked'), ('recalled', 'decision recalled'), ('taken_back', 'decision taken back'), ('appealed', 'an appeal came in')], max_length=10, null=True),
        ),
        migrations.AlterField(
            model_name='item',
            name='kind',
            field=models.CharField(choices=[('manual', 'the model handed it over'), ('dead', 'DEAD before a result'), ('urgent', 'for people at once'), ('pulled', "taken out of the machine's hands"), ('recalled', 'decision recalled'), ('blind', 'blind check of the model'), ('second', 'second look'), ('disputed', 'two people decided differently'), ('correction', 'correction of a decision'), ('appeal', 'appeal against a decision')], max_length=10),
        ),
        migrations.AddIndex(
            model_name='decision',
            index=models.Index(condition=models.Q(('assignment__isnull', False)), fields=['lane', 'decided_at'], name='decision_by_people'),
        ),
        migrations.AddIndex(
            model_name='message',
            index=models.Index(condition=models.Q(('not_before__isnull', False), ('number__isnull', True), ('state', 'ready')), fields=['not_before'], name='message_not_before'),
        ),
        migrations.AddConstraint(
            model_name='decision',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('assignment__isnull', True), ('attempt__isnull', True), ('verdict__isnull', True), ('why', 'recall')), models.Q(('assignment__isnull', True), ('attempt__isnull', True), ('person__isnull', False), ('why', 'taken_back')), models.Q(models.Q(('why__in', ['recall', 'taken_back']), _negated=True), ('verdict__isnull', False), models.Q(models.Q(('assignment__isnull', True), ('attempt__isnull', False)), models.Q(('assignment__isnull', False), ('attempt__isnull', True), ('person__isnull', False)), _connector='OR')), _connector='OR'), name='decision_by_one_attempt_or_one_person'),
        ),
        migrations.AddField(
            model_name='appeal',
            name='decision',
            field=models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='appeal', to='queue_core.decision'),
        ),
        migrations.AddField(
            model_name='appeal',
            name='item',
            field=models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='appeal', to='queue_core.item'),
        ),
        migrations.AddField(
            model_name='appeal',
            name='lane',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='queue_core.lane'),
        ),
        migrations.AddField(
            model_name='appeal',
            name='ticket',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='appeals', to='queue_core.ticket'),
        ),
        migrations.AddField(
            model_name='itempass',
            name='item',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='passes', to='queue_core.item'),
        ),
        migrations.AddField(
            model_name='itempass',
            name='lane',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='queue_core.lane'),
        ),
        migrations.AddField(
            model_name='itempass',
            name='person',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='itempass',
            name='to',
            field=models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='reasoncodeversion',
            name='ground',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='versions', to='queue_core.reasoncode'),
        ),
        migrations.AddField(
            model_name='secondlook',
            name='assignment',
            field=models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='second_look', to='queue_core.assignment'),
        ),
        migrations.AddField(
            model_name='secondlook',
            name='decision',
            field=models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='second_look', to='queue_core.decision'),
        ),
        migrations.AddField(
            model_name='secondlook',
            name='item',
            field=models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='second_look', to='queue_core.item'),
        ),
        migrations.AddField(
            model_name='secondlook',
            name='lane',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='queue_core.lane'),
        ),
        migrations.AddField(
            model_name='secondlook',
            name='person',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='secondlook',
            name='reason_code',
            field=models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='queue_core.reasoncode'),
        ),
        migrations.AddIndex(
            model_name='appeal',
            index=models.Index(fields=['lane', 'received_at'], name='appeal_lane_time'),
        ),
        migrations.AddIndex(
            model_name='itempass',
            index=models.Index(fields=['lane', 'at'], name='item_pass_lane'),
        ),
        migrations.AddIndex(
            model_name='itempass',
            index=models.Index(fields=['person', 'at'], name='item_pass_person'),
        ),
        migrations.AddConstraint(
            model_name='itempass',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('passed_as', 'handed_over'), ('to__isnull', False)), models.Q(models.Q(('passed_as', 'handed_over'), _negated=True), ('to__isnull', True)), _connector='OR'), name='item_pass_to_somebody_when_handed_over'),
        ),
        migrations.AddConstraint(
            model_name='reasoncodeversion',
            constraint=models.UniqueConstraint(fields=('ground', 'version'), name='reason_code_version_once'),
        ),
        migrations.AddIndex(
            model_name='secondlook',
            index=models.Index(fields=['lane', 'looked_at'], name='second_look_lane_time'),
        ),
        *[
            migrations.RunSQL(guard, f"DROP FUNCTION queue_core_guard_{name}() CASCADE;")
            for name, guard in GUARDS.items()
        ],
        migrations.RunSQL(FILL_VERSIONS, migrations.RunSQL.noop),
        migrations.RunSQL(VERSIONS, migrations.RunSQL.noop),
        migrations.RunSQL(KEEP, migrations.RunSQL.noop),
        migrations.RunPython(give_rights, take_rights),
    ]

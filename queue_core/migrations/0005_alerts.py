"""Alerts: their episodes and notices, who gets which, and what keeps both from being told twice."""

import django.core.validators
import django.db.models.deletion
import queue_core.models.alerts
from django.conf import settings
from django.db import migrations, models


EPISODE = """
CREATE FUNCTION queue_core_guard_alert() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (NEW.kind, NEW.subject, NEW.lane_id, NEW.connection_id, NEW.begun_at)
     IS DISTINCT FROM (OLD.kind, OLD.subject, OLD.lane_id, OLD.connection_id, OLD.begun_at) THEN
    RAISE EXCEPTION 'alert %: what it is about never changes', OLD.id USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF OLD.over_at IS NOT NULL AND NEW.over_at IS DISTINCT FROM OLD.over_at
     OR OLD.acknowledged_at IS NOT NULL AND (NEW.acknowledged_at, NEW.acknowledged_by_id)
        IS DISTINCT FROM (OLD.acknowledged_at, OLD.acknowledged_by_id) THEN
    RAISE EXCEPTION 'alert %: it is acknowledged and over once', OLD.id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER queue_core_guard_alert BEFORE UPDATE ON queue_core_alertepisode
  FOR EACH ROW EXECUTE FUNCTION queue_core_guard_alert();
"""

NOTICE = """
CREATE FUNCTION queue_core_guard_notice() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.sent_at IS NOT NULL OR (NEW.episode_id, NEW.phase, NEW.channel, NEW.person_id, NEW.hook_id, NEW.key)
     IS DISTINCT FROM (OLD.episode_id, OLD.phase, OLD.channel, OLD.person_id, OLD.hook_id, OLD.key) THEN
    RAISE EXCEPTION 'notice %: it is sent once', OLD.id USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER queue_core_guard_notice BEFORE UPDATE ON queue_core_alertnotice
  FOR EACH ROW EXECUTE FUNCTION queue_core_guard_notice();
"""

DELETIONS = "".join(
    f"CREATE TRIGGER queue_core_guard_kept BEFORE DELETE ON queue_core_{table}"
    " FOR EACH ROW EXECUTE FUNCTION queue_core_guard_kept();\n"
    for table in ("alertepisode", "alertnotice")
)
NO_DELETIONS = "".join(
    f"DROP TRIGGER queue_core_guard_kept ON queue_core_{table};" for table in ("alertepisode", "alertnotice")
)

#: Of the admin: the model's name, and what an administrator may do with it.
ADMIN = {
    "alertsettings": ["view", "add", "change"],
    "alertsubscription": ["view", "add", "change", "delete"],
    "alerthook": ["view", "add", "change"],
}


def give_rights(apps, schema_editor):
    """Permissions are made here too: Django makes them only after all migrations have run."""
    group = apps.get_model("auth", "Group").objects.get(name="administrator")
    ContentType = apps.get_model("contenttypes", "ContentType")
    Permission = apps.get_model("auth", "Permission")
    for model, acts in ADMIN.items():
        content_type, _is_new = ContentType.objects.get_or_create(app_label="queue_core", model=model)
        name = apps.get_model("queue_core", model)._meta.verbose_name_raw
        for act in acts:
            permission, _is_new = Permission.objects.get_or_create(
                content_type=content_type, codename=f"{act}_{model}", defaults={"name": f"Can {act} {name}"}
            )
            group.permissions.add(permission)


def _drop(table, name):
    return f"DROP TRIGGER queue_core_guard_{name} ON queue_core_{table}; DROP FUNCTION queue_core_guard_{name}();"


class Migration(migrations.Migration):

    dependencies = [
        ('queue_core', '0004_guards'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='AlertWatch',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('watched_at', models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name='AlertEpisode',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('scheduler_dead', 'the scheduler is dead'), ('automatic_hold', 'a lane put itself on hold'), ('nobody', 'nobody is working'), ('no_progress', 'nothing completes'), ('severe_waiting', 'a ticket of severity 3 waits'), ('passing', 'deadlines pass within the hour'), ('held_late', 'tickets are held over the target'), ('ready_late', 'tickets wait over the target'), ('growing', 'the queue grows'), ('model_back', 'the model answers again and a lane is still on hold'), ('soak_met', 'a stage has run its time')], max_length=20, verbose_name='kind')),
                ('subject', models.CharField(max_length=40)),
                ('params', models.JSONField(default=dict)),
                ('begun_at', models.DateTimeField()),
                ('seen_at', models.DateTimeField()),
                ('over_at', models.DateTimeField(null=True)),
                ('acknowledged_at', models.DateTimeField(null=True)),
                ('acknowledged_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('connection', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='queue_core.modelconnection')),
                ('lane', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='queue_core.lane')),
            ],
            options={
                'verbose_name': 'alert',
                'verbose_name_plural': 'alerts',
            },
        ),
        migrations.CreateModel(
            name='AlertHook',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=64, unique=True, validators=[django.core.validators.RegexValidator('\\A[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?\\Z', 'Use 1 to 64 lower-case letters, digits and hyphens; begin and end with a letter or digit.')], verbose_name='name')),
                ('address', models.URLField(max_length=500, verbose_name='address')),
                ('secret_env', models.CharField(help_text='The name of the environment variable that holds the signing secret (whsec_...).', max_length=100, verbose_name="secret's environment variable")),
                ('kinds', models.JSONField(blank=True, default=queue_core.models.alerts.every_kind, verbose_name='alerts')),
                ('is_enabled', models.BooleanField(default=True, verbose_name='enabled')),
                ('version', models.PositiveIntegerField(default=1, editable=False)),
                ('lane', models.ForeignKey(blank=True, help_text='Empty: every lane, and what belongs to none.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='queue_core.lane', verbose_name='lane')),
            ],
            options={
                'verbose_name': 'webhook for alerts',
                'verbose_name_plural': 'webhooks for alerts',
                'ordering': ['name'],
            },
        ),
        migrations.CreateModel(
            name='AlertNotice',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('phase', models.CharField(choices=[('begun', 'begun'), ('over', 'over')], max_length=10)),
                ('channel', models.CharField(choices=[('mail', 'e-mail'), ('hook', 'webhook')], max_length=10)),
                ('key', models.UUIDField(unique=True)),
                ('due_at', models.DateTimeField(help_text='not tried before this; moved on by whoever tries')),
                ('tries', models.PositiveSmallIntegerField(default=0)),
                ('sent_at', models.DateTimeField(null=True)),
                ('given_up_at', models.DateTimeField(null=True)),
                ('fault', models.CharField(blank=True, default='', max_length=300)),
                ('episode', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='notices', to='queue_core.alertepisode')),
                ('hook', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='queue_core.alerthook')),
                ('person', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'verbose_name': 'notice of an alert',
                'verbose_name_plural': 'notices of alerts',
            },
        ),
        migrations.CreateModel(
            name='AlertSettings',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kinds', models.JSONField(blank=True, default=queue_core.models.alerts.every_kind, verbose_name='alerts')),
                ('least_passing', models.PositiveIntegerField(default=1, help_text='Fewer tickets than this whose deadline passes within the hour are no alert.', validators=[django.core.validators.MinValueValidator(1)], verbose_name='least tickets that pass their deadline')),
                ('version', models.PositiveIntegerField(default=1, editable=False)),
                ('lane', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='alert_settings', to='queue_core.lane', verbose_name='lane')),
            ],
            options={
                'verbose_name': 'alerts of a lane',
                'verbose_name_plural': 'alerts of lanes',
                'ordering': ['lane__name'],
            },
        ),
        migrations.CreateModel(
            name='AlertSubscription',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kinds', models.JSONField(blank=True, default=queue_core.models.alerts.every_kind, verbose_name='alerts')),
                ('version', models.PositiveIntegerField(default=1, editable=False)),
                ('lane', models.ForeignKey(blank=True, help_text='Empty: every lane, and what belongs to none.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='queue_core.lane', verbose_name='lane')),
                ('person', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='alert_subscriptions', to=settings.AUTH_USER_MODEL, verbose_name='person')),
            ],
            options={
                'verbose_name': 'mail about alerts',
                'verbose_name_plural': 'mail about alerts',
            },
        ),
        migrations.AddIndex(
            model_name='alertepisode',
            index=models.Index(fields=['-begun_at', '-id'], name='alert_time'),
        ),
        migrations.AddConstraint(
            model_name='alertepisode',
            constraint=models.UniqueConstraint(condition=models.Q(('over_at__isnull', True)), fields=('kind', 'subject'), name='alert_open_once_a_subject'),
        ),
        migrations.AddConstraint(
            model_name='alertepisode',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('acknowledged_at__isnull', True), ('acknowledged_by__isnull', True)), models.Q(('acknowledged_at__isnull', False), ('acknowledged_by__isnull', False)), _connector='OR'), name='alert_acknowledged_by_somebody'),
        ),
        migrations.AddIndex(
            model_name='alertnotice',
            index=models.Index(condition=models.Q(('given_up_at__isnull', True), ('sent_at__isnull', True)), fields=['due_at', 'id'], name='alert_notice_due'),
        ),
        migrations.AddConstraint(
            model_name='alertnotice',
            constraint=models.UniqueConstraint(fields=('episode', 'phase', 'channel', 'person', 'hook'), name='alert_notice_once', nulls_distinct=False),
        ),
        migrations.AddConstraint(
            model_name='alertnotice',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('channel', 'mail'), ('hook__isnull', True), ('person__isnull', False)), models.Q(('channel', 'hook'), ('hook__isnull', False), ('person__isnull', True)), _connector='OR'), name='alert_notice_has_one_receiver'),
        ),
        migrations.AddConstraint(
            model_name='alertsubscription',
            constraint=models.UniqueConstraint(fields=('person', 'lane'), name='alert_subscription_once', nulls_distinct=False, violation_error_message='This person has a row for this lane already.'),
        ),
        migrations.RunSQL(EPISODE, _drop("alertepisode", "alert")),
        migrations.RunSQL(NOTICE, _drop("alertnotice", "notice")),
        migrations.RunSQL(DELETIONS, NO_DELETIONS),
        migrations.RunPython(give_rights, migrations.RunPython.noop),
    ]

"""Endpoints, what is delivered to them, and who may look after that. Numbering gets an index of what it has to do."""

import datetime
import django.core.validators
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

MESSAGE = """
CREATE FUNCTION queue_core_guard_message() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (NEW.ticket_id, NEW.lane_id, NEW.decision_id, NEW.seq, NEW.key, NEW.kind, NEW.created_at)
     IS DISTINCT FROM (OLD.ticket_id, OLD.lane_id, OLD.decision_id, OLD.seq, OLD.key, OLD.kind, OLD.created_at) THEN
    RAISE EXCEPTION 'message %: what it tells of never changes', OLD.id USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF OLD.number IS NOT NULL AND NEW.number IS DISTINCT FROM OLD.number THEN
    RAISE EXCEPTION 'message %: it is numbered once', OLD.id USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF NEW.state <> OLD.state AND (OLD.state = 'withdrawn' OR NEW.state = 'kept_back')
     OR NEW.number IS NOT NULL AND NEW.state = 'kept_back' THEN
    RAISE EXCEPTION 'message %: no way leads from % to %', OLD.id, OLD.state, NEW.state
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER queue_core_guard_message BEFORE UPDATE ON queue_core_message
  FOR EACH ROW EXECUTE FUNCTION queue_core_guard_message();
"""

DELIVERY = """
CREATE FUNCTION queue_core_guard_delivery() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (NEW.message_id, NEW.endpoint_id, NEW.ticket_id, NEW.lane_id, NEW.kind, NEW.number, NEW.created_at)
     IS DISTINCT FROM (OLD.message_id, OLD.endpoint_id, OLD.ticket_id, OLD.lane_id, OLD.kind, OLD.number,
      OLD.created_at) THEN
    RAISE EXCEPTION 'delivery %: what goes where never changes', OLD.id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF NEW.tries < OLD.tries THEN
    RAISE EXCEPTION 'delivery %: its tries never fall', OLD.id USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF OLD.state = 'withdrawn' AND NEW.state <> 'withdrawn' THEN
    RAISE EXCEPTION 'delivery %: it was withdrawn', OLD.id USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER queue_core_guard_delivery BEFORE UPDATE ON queue_core_delivery
  FOR EACH ROW EXECUTE FUNCTION queue_core_guard_delivery();
"""

TRY = """
CREATE FUNCTION queue_core_guard_deliverytry() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.ended_at IS NOT NULL
     OR (NEW.delivery_id, NEW.number, NEW.lease, NEW.started_at)
     IS DISTINCT FROM (OLD.delivery_id, OLD.number, OLD.lease, OLD.started_at) THEN
    RAISE EXCEPTION 'try %: it is closed once', OLD.id USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER queue_core_guard_deliverytry BEFORE UPDATE ON queue_core_deliverytry
  FOR EACH ROW EXECUTE FUNCTION queue_core_guard_deliverytry();
"""

RIGHTS = {"manage_deliveries": ("May see deliveries, replay them, and disable endpoints", ("lead", "administrator"))} | {
    f"{act}_endpoint": (f"Can {act} endpoint", ("administrator",)) for act in ("view", "add", "change")
}


def _drop(name):
    table = f"queue_core_{name}"
    return f"DROP TRIGGER queue_core_guard_{name} ON {table}; DROP FUNCTION queue_core_guard_{name}();"


def give_rights(apps, schema_editor):
    ContentType = apps.get_model("contenttypes", "ContentType")
    Permission = apps.get_model("auth", "Permission")
    Group = apps.get_model("auth", "Group")
    content_type, _is_new = ContentType.objects.get_or_create(app_label="queue_core", model="endpoint")
    for codename, (name, roles) in RIGHTS.items():
        permission, _is_new = Permission.objects.get_or_create(
            content_type=content_type, codename=codename, defaults={"name": name}
        )
        for group in Group.objects.filter(name__in=roles):
            group.permissions.add(permission)


def take_rights(apps, schema_editor):
    Permission = apps.get_model("auth", "Permission")
    Permission.objects.filter(content_type__app_label="queue_core", codename__in=RIGHTS).delete()


class Migration(migrations.Migration):

    dependencies = [
        ('queue_core', '0008_figures_filled'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
    ]

    operations = [
        migrations.CreateModel(
            name='Delivery',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('decision', 'decision'), ('decision.recalled', 'decision.recalled'), ('item.opened', 'item.opened'), ('ticket.dead', 'ticket.dead'), ('lane.on_hold', 'lane.on_hold'), ('stage.raised', 'stage.raised'), ('outage.opened', 'outage.opened'), ('outage.closed', 'outage.closed'), ('endpoint.test', 'endpoint.test')], max_length=20)),
                ('number', models.BigIntegerField(null=True)),
                ('state', models.CharField(choices=[('pending', 'waiting'), ('delivered', 'delivered'), ('given_up', 'given up'), ('withdrawn', 'withdrawn before delivery')], default='pending', max_length=10)),
                ('tries', models.PositiveIntegerField(default=0)),
                ('budget', models.PositiveIntegerField()),
                ('due_at', models.DateTimeField()),
                ('lease', models.UUIDField(null=True)),
                ('lease_until', models.DateTimeField(null=True)),
                ('last_outcome', models.CharField(choices=[('delivered', 'ok'), ('redirect', 'redirect, not followed'), ('gone', 'gone'), ('refused', 'refused'), ('failed', 'failed'), ('timeout', 'time-out'), ('unreachable', 'unreachable'), ('forbidden', 'address not allowed'), ('no_secret', 'no secret'), ('lost', 'sender vanished')], max_length=12, null=True)),
                ('last_status', models.PositiveSmallIntegerField(null=True)),
                ('created_at', models.DateTimeField()),
                ('ended_at', models.DateTimeField(null=True)),
            ],
            options={
                'verbose_name': 'delivery',
                'verbose_name_plural': 'deliveries',
            },
        ),
        migrations.CreateModel(
            name='DeliveryTry',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField()),
                ('lease', models.UUIDField()),
                ('started_at', models.DateTimeField()),
                ('ended_at', models.DateTimeField(null=True)),
                ('outcome', models.CharField(choices=[('delivered', 'ok'), ('redirect', 'redirect, not followed'), ('gone', 'gone'), ('refused', 'refused'), ('failed', 'failed'), ('timeout', 'time-out'), ('unreachable', 'unreachable'), ('forbidden', 'address not allowed'), ('no_secret', 'no secret'), ('lost', 'sender vanished')], max_length=12, null=True)),
                ('status', models.PositiveSmallIntegerField(null=True)),
                ('length', models.PositiveIntegerField(help_text='bytes of the answer that were read', null=True)),
                ('duration', models.DurationField(null=True)),
                ('detail', models.CharField(blank=True, default='', max_length=500)),
            ],
            options={
                'verbose_name': 'try of a delivery',
                'verbose_name_plural': 'tries of deliveries',
            },
        ),
        migrations.CreateModel(
            name='Endpoint',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=64, unique=True, validators=[django.core.validators.RegexValidator('\\A[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?\\Z', 'Use 1 to 64 lower-case letters, digits and hyphens; begin and end with a letter or digit.')], verbose_name='name')),
                ('address', models.CharField(help_text='https, and reachable from outside unless it is allowed.', max_length=500, verbose_name='address')),
                ('kinds', models.JSONField(default=list, verbose_name='messages')),
                ('lanes', models.JSONField(blank=True, default=list, help_text='None chosen: all lanes.', verbose_name='lanes')),
                ('state', models.CharField(choices=[('enabled', 'enabled'), ('disabled', 'disabled: its messages are kept for it'), ('retired', 'retired: it wants no more messages')], default='enabled', editable=False, max_length=10, verbose_name='state')),
                ('time_limit', models.DurationField(default=datetime.timedelta(seconds=10), verbose_name='time limit of a try')),
                ('parallel', models.PositiveSmallIntegerField(default=4, validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(16)], verbose_name='messages at once')),
                ('max_tries', models.PositiveSmallIntegerField(default=16, help_text='After so many a message is given up: 16 take about two days.', validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(100)], verbose_name='tries')),
                ('version', models.PositiveIntegerField(default=1, editable=False)),
                ('created_at', models.DateTimeField(editable=False, verbose_name='made')),
                ('changed_state_at', models.DateTimeField(editable=False, null=True)),
                ('failures', models.PositiveIntegerField(default=0, editable=False, help_text='failed tries running')),
                ('failing_since', models.DateTimeField(editable=False, null=True)),
                ('opens', models.PositiveIntegerField(default=0, editable=False, help_text='times the circuit opened in a row')),
                ('open_until', models.DateTimeField(editable=False, help_text='nothing is sent before; then one try', null=True)),
                ('last_outcome', models.CharField(choices=[('delivered', 'ok'), ('redirect', 'redirect, not followed'), ('gone', 'gone'), ('refused', 'refused'), ('failed', 'failed'), ('timeout', 'time-out'), ('unreachable', 'unreachable'), ('forbidden', 'address not allowed'), ('no_secret', 'no secret'), ('lost', 'sender vanished')], editable=False, max_length=12, null=True)),
                ('last_status', models.PositiveSmallIntegerField(editable=False, null=True)),
                ('last_detail', models.CharField(blank=True, default='', editable=False, max_length=500)),
                ('last_delivered_at', models.DateTimeField(editable=False, null=True)),
                ('sender', models.UUIDField(editable=False, help_text='the one task that sends to it', null=True)),
                ('sender_until', models.DateTimeField(editable=False, null=True)),
            ],
            options={
                'verbose_name': 'endpoint',
                'verbose_name_plural': 'endpoints',
                'ordering': ['name'],
                'permissions': [('manage_deliveries', 'May see deliveries, replay them, and disable endpoints')],
            },
        ),
        migrations.CreateModel(
            name='EndpointSecret',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('salt', models.UUIDField()),
                ('fingerprint', models.CharField(max_length=16)),
                ('made_at', models.DateTimeField()),
                ('ends_at', models.DateTimeField(null=True)),
            ],
            options={
                'verbose_name': 'secret of an endpoint',
                'verbose_name_plural': 'secrets of endpoints',
            },
        ),
        migrations.CreateModel(
            name='RelayMark',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('read_up_to', models.BigIntegerField(default=0)),
            ],
            options={
                'verbose_name': 'mark of the relay',
                'verbose_name_plural': 'marks of the relay',
            },
        ),
        migrations.RemoveIndex(
            model_name='message',
            name='message_unnumbered',
        ),
        migrations.AlterField(
            model_name='message',
            name='kind',
            field=models.CharField(choices=[('decision', 'decision'), ('decision.recalled', 'decision.recalled'), ('item.opened', 'item.opened'), ('ticket.dead', 'ticket.dead'), ('lane.on_hold', 'lane.on_hold'), ('stage.raised', 'stage.raised'), ('outage.opened', 'outage.opened'), ('outage.closed', 'outage.closed'), ('endpoint.test', 'endpoint.test')], max_length=20),
        ),
        migrations.AddIndex(
            model_name='message',
            index=models.Index(condition=models.Q(('number__isnull', True), ('state', 'ready'), models.Q(('kind', 'endpoint.test'), _negated=True)), fields=['id'], name='message_to_number'),
        ),
        migrations.AddField(
            model_name='delivery',
            name='lane',
            field=models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='queue_core.lane'),
        ),
        migrations.AddField(
            model_name='delivery',
            name='message',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='deliveries', to='queue_core.message'),
        ),
        migrations.AddField(
            model_name='delivery',
            name='ticket',
            field=models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='queue_core.ticket'),
        ),
        migrations.AddField(
            model_name='deliverytry',
            name='delivery',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='tried', to='queue_core.delivery'),
        ),
        migrations.AddField(
            model_name='endpoint',
            name='changed_state_by',
            field=models.ForeignKey(editable=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='delivery',
            name='endpoint',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='deliveries', to='queue_core.endpoint'),
        ),
        migrations.AddField(
            model_name='endpointsecret',
            name='endpoint',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='secrets', to='queue_core.endpoint'),
        ),
        migrations.AddField(
            model_name='endpointsecret',
            name='made_by',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddConstraint(
            model_name='deliverytry',
            constraint=models.UniqueConstraint(fields=('delivery', 'number'), name='delivery_try_once_a_number'),
        ),
        migrations.AddConstraint(
            model_name='deliverytry',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('ended_at__isnull', True), ('outcome__isnull', True)), models.Q(('ended_at__isnull', False), ('outcome__isnull', False)), _connector='OR'), name='delivery_try_outcome_when_ended'),
        ),
        migrations.AddConstraint(
            model_name='endpoint',
            constraint=models.CheckConstraint(condition=models.Q(('time_limit__gte', datetime.timedelta(microseconds=100000)), ('time_limit__lte', datetime.timedelta(seconds=60))), name='endpoint_time_limit_in_bounds', violation_error_message='The time limit of a try is between 0.1 seconds and a minute.'),
        ),
        migrations.AddConstraint(
            model_name='endpoint',
            constraint=models.CheckConstraint(condition=models.Q(('parallel__gte', 1), ('parallel__lte', 16)), name='endpoint_parallel_in_1_to_16'),
        ),
        migrations.AddConstraint(
            model_name='endpoint',
            constraint=models.CheckConstraint(condition=models.Q(('max_tries__gte', 1)), name='endpoint_max_tries_at_least_one'),
        ),
        migrations.AddConstraint(
            model_name='endpoint',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('sender__isnull', True), ('sender_until__isnull', True)), models.Q(('sender__isnull', False), ('sender_until__isnull', False)), _connector='OR'), name='endpoint_sender_until_a_time'),
        ),
        migrations.AddIndex(
            model_name='delivery',
            index=models.Index(condition=models.Q(('state', 'pending')), fields=['endpoint', 'due_at', 'id'], name='delivery_due'),
        ),
        migrations.AddIndex(
            model_name='delivery',
            index=models.Index(condition=models.Q(('state', 'pending'), ('ticket__isnull', False)), fields=['endpoint', 'ticket', 'number'], name='delivery_ticket_order'),
        ),
        migrations.AddIndex(
            model_name='delivery',
            index=models.Index(condition=models.Q(('kind', 'decision'), ('state', 'pending')), fields=['lane', 'created_at'], name='delivery_open_decision'),
        ),
        migrations.AddIndex(
            model_name='delivery',
            index=models.Index(fields=['endpoint', '-id'], name='delivery_endpoint_log'),
        ),
        migrations.AddIndex(
            model_name='delivery',
            index=models.Index(condition=models.Q(('state', 'delivered'), _negated=True), fields=['state', '-id'], name='delivery_state_log'),
        ),
        migrations.AddIndex(
            model_name='delivery',
            index=models.Index(fields=['ticket', 'id'], name='delivery_ticket'),
        ),
        migrations.AddConstraint(
            model_name='delivery',
            constraint=models.UniqueConstraint(fields=('message', 'endpoint'), name='delivery_once_an_endpoint'),
        ),
        migrations.AddConstraint(
            model_name='delivery',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('ended_at__isnull', True), ('state', 'pending')), models.Q(models.Q(('state', 'pending'), _negated=True), ('ended_at__isnull', False)), _connector='OR'), name='delivery_end_when_ended'),
        ),
        migrations.AddConstraint(
            model_name='delivery',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('lease__isnull', True), ('lease_until__isnull', True)), models.Q(('lease__isnull', False), ('lease_until__isnull', False), ('state', 'pending')), _connector='OR'), name='delivery_leased_while_pending'),
        ),
        migrations.AddConstraint(
            model_name='endpointsecret',
            constraint=models.UniqueConstraint(condition=models.Q(('ends_at__isnull', True)), fields=('endpoint',), name='endpoint_secret_lasting_once'),
        ),
        migrations.AddIndex(
            model_name='delivery',
            index=models.Index(condition=models.Q(('lease__isnull', False)), fields=['lease_until'], name='delivery_leased'),
        ),
        migrations.RunSQL(MESSAGE, _drop("message")),
        migrations.RunSQL(DELIVERY, _drop("delivery")),
        migrations.RunSQL(TRY, _drop("deliverytry")),
        migrations.RunPython(give_rights, take_rights),
    ]

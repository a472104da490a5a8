"""The gate's second half and what follows from it: known answers, blind checks, recalls, and who may recall."""

import datetime
import django.core.validators
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


def _written_once(table, name, fixed, ending, says):
    """A trigger for rows of which `fixed` never changes and `ending` is written once."""
    return f"""
CREATE FUNCTION queue_core_guard_{name}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF ({", ".join("NEW." + one for one in fixed)}) IS DISTINCT FROM ({", ".join("OLD." + one for one in fixed)})
     OR OLD.{ending[0]} IS NOT NULL
        AND ({", ".join("NEW." + one for one in ending)}) IS DISTINCT FROM ({", ".join("OLD." + one for one in ending)}) THEN
    RAISE EXCEPTION '{says} %: it is written once', OLD.id USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER queue_core_guard_{name} BEFORE UPDATE ON queue_core_{table}
  FOR EACH ROW EXECUTE FUNCTION queue_core_guard_{name}();
"""


GUARDS = {
    ("knownreply", "known_reply"): _written_once(
        "knownreply", "known_reply",
        ["known_id", "lane_id", "run_id", "policy_id", "connection_id", "version", "expected", "asked_at"],
        ["ended_at", "outcome", "result", "scores"], "reply to a known answer",
    ),
    ("recall", "recall"): _written_once(
        "recall", "recall",
        ["lane_id", "run_id", "selection", "\"to\"", "deadline_after", "reason", "by_id", "started_at"],
        ["ended_at"], "recall",
    ),
    ("recallentry", "recall_entry"): _written_once(
        "recallentry", "recall_entry", ["recall_id", "decision_id"], ["outcome", "job_id", "at"], "entry of a recall",
    ),
    ("blindcheck", "blind_check"): """
CREATE FUNCTION queue_core_guard_blind_check() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'blind check %: it is written once', OLD.id USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER queue_core_guard_blind_check BEFORE UPDATE ON queue_core_blindcheck
  FOR EACH ROW EXECUTE FUNCTION queue_core_guard_blind_check();
""",
}
KEPT = ("knownreply", "recall", "recallentry", "blindcheck")
KEEP = "".join(
    f"CREATE TRIGGER queue_core_guard_kept BEFORE DELETE ON queue_core_{table}"
    " FOR EACH ROW EXECUTE FUNCTION queue_core_guard_kept();\n"
    for table in KEPT
)
KEEP_NO_MORE = "".join(f"DROP TRIGGER queue_core_guard_kept ON queue_core_{table};\n" for table in KEPT)

#: The model each right stands at, the rights with their names as Django would write them, and whose they are.
RIGHTS = [
    ("lane", {"recall_decision": "May recall decisions of the model"}, ("lead", "administrator")),
    (
        "knownanswer",
        {f"{act}_knownanswer": f"Can {act} known answer" for act in ("view", "add", "change")},
        ("administrator",),
    ),
]


def give_rights(apps, schema_editor):
    ContentType = apps.get_model("contenttypes", "ContentType")
    Permission = apps.get_model("auth", "Permission")
    Group = apps.get_model("auth", "Group")
    for model, rights, roles in RIGHTS:
        content_type, _is_new = ContentType.objects.get_or_create(app_label="queue_core", model=model)
        for codename, name in rights.items():
            permission, _is_new = Permission.objects.get_or_create(
                content_type=content_type, codename=codename, defaults={"name": name}
            )
            for group in Group.objects.filter(name__in=roles):
                group.permissions.add(permission)


def take_rights(apps, schema_editor):
    Permission = apps.get_model("auth", "Permission")
    codenames = [codename for _model, rights, _roles in RIGHTS for codename in rights]
    Permission.objects.filter(content_type__app_label="queue_core", codename__in=codenames).delete()


class Migration(migrations.Migration):

    dependencies = [
        ('queue_core', '0005_alerts'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
    ]

    operations = [
        migrations.CreateModel(
            name='BlindCheck',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('verdict', models.CharField(choices=[('APPROVED', 'approved'), ('REJECTED', 'rejected')], max_length=8)),
                ('agrees', models.BooleanField()),
                ('checked_at', models.DateTimeField()),
            ],
            options={
                'verbose_name': 'blind check',
                'verbose_name_plural': 'blind checks',
            },
        ),
        migrations.CreateModel(
            name='KnownAnswer',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('title', models.CharField(max_length=120, verbose_name='title')),
                ('text', models.TextField(help_text="What the model is asked about. Write one of your own: no person's content belongs here.", validators=[django.core.validators.MaxLengthValidator(10000)], verbose_name='text')),
                ('expected', models.CharField(choices=[('APPROVED', 'approved'), ('REJECTED', 'rejected'), ('MANUAL', 'for a person')], help_text="What the lane's policy has to make of the model's answer.", max_length=8, verbose_name='right result')),
                ('is_active', models.BooleanField(default=True, verbose_name='in use')),
                ('version', models.PositiveIntegerField(default=1, editable=False)),
            ],
            options={
                'verbose_name': 'known answer',
                'verbose_name_plural': 'known answers',
                'ordering': ['lane', 'title'],
            },
        ),
        migrations.CreateModel(
            name='KnownReply',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('version', models.PositiveIntegerField()),
                ('expected', models.CharField(choices=[('APPROVED', 'approved'), ('REJECTED', 'rejected'), ('MANUAL', 'for a person')], max_length=8)),
                ('asked_at', models.DateTimeField()),
                ('ended_at', models.DateTimeField(null=True)),
                ('outcome', models.CharField(choices=[('verdict', 'verdict'), ('refused', 'refused by the model'), ('input_rejected', 'input rejected'), ('invalid_answer', 'invalid answer'), ('unavailable', 'unavailable'), ('overloaded', 'overloaded'), ('misconfigured', 'connection refused by configuration'), ('timeout', 'timed out: effect unknown'), ('lease_expired', 'lease expired: effect unknown'), ('released', 'given back uncalled'), ('superseded', 'superseded while running'), ('withdrawn', 'withdrawn while running'), ('refused_by_hold', 'result refused by a hold'), ('fence_raised', 'fence raised by a person'), ('unknown', 'unknown after a restore')], max_length=16, null=True)),
                ('result', models.CharField(choices=[('APPROVED', 'approved'), ('REJECTED', 'rejected'), ('MANUAL', 'for a person')], max_length=8, null=True)),
                ('cause', models.CharField(blank=True, db_default='', default='', max_length=40)),
                ('scores', models.JSONField(null=True)),
                ('latency', models.DurationField(null=True)),
                ('model', models.CharField(blank=True, db_default='', default='', max_length=200)),
                ('detail', models.CharField(blank=True, db_default='', default='', max_length=512)),
            ],
            options={
                'verbose_name': 'reply to a known answer',
                'verbose_name_plural': 'replies to known answers',
            },
        ),
        migrations.CreateModel(
            name='Recall',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('selection', models.JSONField()),
                ('to', models.CharField(choices=[('people', 'items for people'), ('review', 'a new review round by the model')], max_length=8)),
                ('deadline_after', models.DurationField(null=True)),
                ('reason', models.CharField(max_length=500)),
                ('started_at', models.DateTimeField()),
                ('ended_at', models.DateTimeField(null=True)),
            ],
            options={
                'verbose_name': 'recall',
                'verbose_name_plural': 'recalls',
            },
        ),
        migrations.CreateModel(
            name='RecallEntry',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('outcome', models.CharField(choices=[('withdrawn', 'withdrawn before delivery'), ('announced', 'consumers told'), ('passed_over', 'replaced meanwhile')], max_length=12, null=True)),
                ('at', models.DateTimeField(null=True)),
            ],
            options={
                'verbose_name': 'entry of a recall',
                'verbose_name_plural': 'entries of recalls',
            },
        ),
        migrations.AlterModelOptions(
            name='lane',
            options={'ordering': ['name'], 'permissions': [('view_board', 'May see the board, lanes and jobs'), ('view_evidence', 'May read evidence'), ('decide_item', 'May take and decide items'), ('requeue_item', 'May requeue DEAD jobs'), ('pull_job', "May take waiting jobs out of the machine's hands"), ('hold_lane', 'May put a lane on hold'), ('raise_stage', 'May raise, resume and step down stages'), ('override_guardrail', 'May raise past an unmet soak or guardrail, with a reason'), ('force_policy', 'May put a policy into force'), ('move_deadlines', 'May move service deadlines'), ('manage_outage', 'May open, keep and close the record of an outage'), ('recall_decision', 'May recall decisions of the model')], 'verbose_name': 'lane', 'verbose_name_plural': 'lanes'},
        ),
        migrations.AddField(
            model_name='stage',
            name='blind_share',
            field=models.FloatField(db_default=0.0, default=0.0, help_text="So many of the model's decisions become items for people who do not see them. 0: none.", validators=[django.core.validators.MinValueValidator(0.0), django.core.validators.MaxValueValidator(1.0)], verbose_name='share checked blind'),
        ),
        migrations.AddField(
            model_name='stage',
            name='known_every',
            field=models.DurationField(db_default=datetime.timedelta(seconds=600), default=datetime.timedelta(seconds=600), help_text="At the stage's start, and again after so long.", verbose_name='known answers are sent every'),
        ),
        migrations.AddField(
            model_name='stage',
            name='least_blind',
            field=models.PositiveIntegerField(db_default=10, default=10, help_text='Fewer checks than this are inconclusive, never good.', verbose_name='least blind checks'),
        ),
        migrations.AddField(
            model_name='stage',
            name='max_disagreement',
            field=models.FloatField(blank=True, help_text='The most blind checks in which people decided otherwise. Empty: not judged.', null=True, validators=[django.core.validators.MinValueValidator(0.0), django.core.validators.MaxValueValidator(1.0)], verbose_name='most disagreement'),
        ),
        migrations.AddField(
            model_name='stage',
            name='max_share_shift',
            field=models.FloatField(blank=True, help_text="How far the shares of APPROVED, REJECTED and MANUAL may lie from the lane's usual ones for this time of the week, for example 0.2. Empty: not judged.", null=True, validators=[django.core.validators.MinValueValidator(0.01), django.core.validators.MaxValueValidator(1.0)], verbose_name="most shift of a result's share"),
        ),
        migrations.AddField(
            model_name='stage',
            name='max_wrong_ratio',
            field=models.FloatField(blank=True, help_text='More wrong results than this share put the lane on hold. Empty: known answers are not sent.', null=True, validators=[django.core.validators.MinValueValidator(0.0), django.core.validators.MaxValueValidator(1.0)], verbose_name='most wrong known answers'),
        ),
        migrations.AddField(
            model_name='stagerun',
            name='blind_share',
            field=models.FloatField(db_default=0.0, default=0.0),
        ),
        migrations.AddField(
            model_name='stagerun',
            name='blind_up_to',
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name='stagerun',
            name='known_asked_at',
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name='stagerun',
            name='known_every',
            field=models.DurationField(db_default=datetime.timedelta(seconds=600), default=datetime.timedelta(seconds=600)),
        ),
        migrations.AddField(
            model_name='stagerun',
            name='least_blind',
            field=models.PositiveIntegerField(db_default=10, default=10),
        ),
        migrations.AddField(
            model_name='stagerun',
            name='max_disagreement',
            field=models.FloatField(null=True),
        ),
        migrations.AddField(
            model_name='stagerun',
            name='max_share_shift',
            field=models.FloatField(null=True),
        ),
        migrations.AddField(
            model_name='stagerun',
            name='max_wrong_ratio',
            field=models.FloatField(null=True),
        ),
        migrations.AlterField(
            model_name='assignment',
            name='ended_as',
            field=models.CharField(choices=[('decided', 'decided'), ('requeued', 'requeued'), ('given_back', 'given back'), ('handed_over', 'handed over'), ('expired', 'time was over'), ('item_closed', 'item closed'), ('checked', 'checked')], max_length=12, null=True),
        ),
        migrations.AlterField(
            model_name='hold',
            name='reason',
            field=models.CharField(choices=[('wrong_answers', 'the model answers wrongly'), ('model_trouble', 'the model is in trouble'), ('desk_full', 'people cannot keep up'), ('precaution', 'as a precaution'), ('auto_unavailable', 'the model was unavailable'), ('auto_overloaded', 'the model was overloaded'), ('auto_errors', 'too many errors'), ('auto_timeouts', 'too many timeouts'), ('auto_stale', 'too many stale answers'), ('auto_slow', 'calls are too slow'), ('auto_misconfigured', 'the model refused the connection'), ('auto_wrong', 'too many known answers were wrong'), ('connection_changed', 'the connection was changed'), ('new_lane', 'the lane is new'), ('restored', 'the database was restored')], max_length=20),
        ),
        migrations.AlterField(
            model_name='item',
            name='closed_as',
            field=models.CharField(choices=[('decided', 'decided'), ('requeued', 'requeued'), ('superseded', 'superseded'), ('withdrawn', 'withdrawn'), ('checked', 'checked'), ('recalled', 'decision recalled')], max_length=10, null=True),
        ),
        migrations.AlterField(
            model_name='item',
            name='kind',
            field=models.CharField(choices=[('manual', 'the model handed it over'), ('dead', 'DEAD before a result'), ('urgent', 'for people at once'), ('pulled', "taken out of the machine's hands"), ('recalled', 'decision recalled'), ('blind', 'blind check of the model')], max_length=10),
        ),
        migrations.AlterField(
            model_name='outage',
            name='cause',
            field=models.CharField(choices=[('wrong_answers', 'the model answers wrongly'), ('model_trouble', 'the model is in trouble'), ('desk_full', 'people cannot keep up'), ('precaution', 'as a precaution'), ('auto_unavailable', 'the model was unavailable'), ('auto_overloaded', 'the model was overloaded'), ('auto_errors', 'too many errors'), ('auto_timeouts', 'too many timeouts'), ('auto_stale', 'too many stale answers'), ('auto_slow', 'calls are too slow'), ('auto_misconfigured', 'the model refused the connection'), ('auto_wrong', 'too many known answers were wrong'), ('connection_changed', 'the connection was changed'), ('new_lane', 'the lane is new'), ('restored', 'the database was restored')], max_length=20),
        ),
        migrations.AddIndex(
            model_name='message',
            index=models.Index(condition=models.Q(('state', 'kept_back')), fields=['lane', 'decision'], name='message_kept_back'),
        ),
        migrations.AddConstraint(
            model_name='stage',
            constraint=models.CheckConstraint(condition=models.Q(('known_every__gte', datetime.timedelta(seconds=60))), name='stage_known_every_a_minute_at_least', violation_error_message='Known answers are sent once a minute at most.'),
        ),
        migrations.AddField(
            model_name='blindcheck',
            name='assignment',
            field=models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='blind_check', to='queue_core.assignment'),
        ),
        migrations.AddField(
            model_name='blindcheck',
            name='decision',
            field=models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='blind_check', to='queue_core.decision'),
        ),
        migrations.AddField(
            model_name='blindcheck',
            name='item',
            field=models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='blind_check', to='queue_core.item'),
        ),
        migrations.AddField(
            model_name='blindcheck',
            name='lane',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='queue_core.lane'),
        ),
        migrations.AddField(
            model_name='blindcheck',
            name='person',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='blindcheck',
            name='run',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='blind_checks', to='queue_core.stagerun'),
        ),
        migrations.AddField(
            model_name='knownanswer',
            name='lane',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='known_answers', to='queue_core.lane', verbose_name='lane'),
        ),
        migrations.AddField(
            model_name='knownreply',
            name='connection',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='queue_core.modelconnection'),
        ),
        migrations.AddField(
            model_name='knownreply',
            name='known',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='replies', to='queue_core.knownanswer'),
        ),
        migrations.AddField(
            model_name='knownreply',
            name='lane',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='queue_core.lane'),
        ),
        migrations.AddField(
            model_name='knownreply',
            name='policy',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='queue_core.policy'),
        ),
        migrations.AddField(
            model_name='knownreply',
            name='run',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='known_replies', to='queue_core.stagerun'),
        ),
        migrations.AddField(
            model_name='recall',
            name='by',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='recall',
            name='lane',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='recalls', to='queue_core.lane'),
        ),
        migrations.AddField(
            model_name='recall',
            name='run',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='recalls', to='queue_core.stagerun'),
        ),
        migrations.AddField(
            model_name='recallentry',
            name='decision',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='recall_entries', to='queue_core.decision'),
        ),
        migrations.AddField(
            model_name='recallentry',
            name='job',
            field=models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='queue_core.job'),
        ),
        migrations.AddField(
            model_name='recallentry',
            name='recall',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='entries', to='queue_core.recall'),
        ),
        migrations.AddConstraint(
            model_name='knownanswer',
            constraint=models.UniqueConstraint(fields=('lane', 'title'), name='known_answer_title_once_a_lane'),
        ),
        migrations.AddConstraint(
            model_name='knownanswer',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('text', ''), _negated=True), models.Q(('title', ''), _negated=True)), name='known_answer_says_something'),
        ),
        migrations.AddIndex(
            model_name='knownreply',
            index=models.Index(fields=['run', 'known', '-asked_at'], name='known_reply_run'),
        ),
        migrations.AddConstraint(
            model_name='knownreply',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('ended_at__isnull', True), ('outcome__isnull', True), ('result__isnull', True)), models.Q(('ended_at__isnull', False), ('outcome__isnull', False)), _connector='OR'), name='known_reply_outcome_when_ended'),
        ),
        migrations.AddIndex(
            model_name='recall',
            index=models.Index(fields=['lane', '-started_at'], name='recall_lane_time'),
        ),
        migrations.AddIndex(
            model_name='recall',
            index=models.Index(condition=models.Q(('ended_at__isnull', True)), fields=['id'], name='recall_open'),
        ),
        migrations.AddConstraint(
            model_name='recall',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('to', 'review'), _negated=True), ('deadline_after__isnull', False), _connector='OR'), name='recall_to_review_has_a_deadline'),
        ),
        migrations.AddIndex(
            model_name='recallentry',
            index=models.Index(condition=models.Q(('outcome__isnull', True)), fields=['recall', 'id'], name='recall_entry_pending'),
        ),
        migrations.AddConstraint(
            model_name='recallentry',
            constraint=models.UniqueConstraint(fields=('recall', 'decision'), name='recall_entry_once_a_decision'),
        ),
        migrations.AddConstraint(
            model_name='recallentry',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('at__isnull', True), ('job__isnull', True), ('outcome__isnull', True)), models.Q(('at__isnull', False), ('outcome__isnull', False)), _connector='OR'), name='recall_entry_time_when_done'),
        ),
        *[
            migrations.RunSQL(
                guard, f"DROP TRIGGER queue_core_guard_{name} ON queue_core_{table}; DROP FUNCTION queue_core_guard_{name}();"
            )
            for (table, name), guard in GUARDS.items()
        ],
        migrations.RunSQL(KEEP, KEEP_NO_MORE),
        migrations.RunPython(give_rights, take_rights),
    ]

from django.db import migrations, models
from django.db.models import DO_NOTHING, PROTECT


def _key():
    return ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"))


def _lane(on_delete=PROTECT, **options):
    return (
        "lane",
        models.ForeignKey(db_index=False, on_delete=on_delete, related_name="+", to="queue_core.lane", **options),
    )


class Migration(migrations.Migration):
    dependencies = [("queue_core", "0006_recalls_known_answers_blind_checks")]

    operations = [
        migrations.CreateModel(
            name="FigureChange",
            fields=[
                _key(),
                ("minute", models.DateTimeField()),
                ("counts", models.JSONField()),
                ("totals", models.JSONField()),
                ("due", models.JSONField()),
                _lane(DO_NOTHING, db_constraint=False),
            ],
            options={"verbose_name": "change of figures", "verbose_name_plural": "changes of figures"},
        ),
        migrations.CreateModel(
            name="LaneMinute",
            fields=[
                _key(),
                ("minute", models.DateTimeField(verbose_name="minute")),
                ("counts", models.JSONField(verbose_name="counts")),
                _lane(),
            ],
            options={
                "verbose_name": "minute of a lane",
                "verbose_name_plural": "minutes of lanes",
                "indexes": [models.Index(fields=["minute"], name="lane_minute_age")],
                "constraints": [models.UniqueConstraint(fields=("lane", "minute"), name="lane_minute_once")],
            },
        ),
        migrations.CreateModel(
            name="LaneSample",
            fields=[
                _key(),
                ("minute", models.DateTimeField(verbose_name="minute")),
                ("taken_at", models.DateTimeField(verbose_name="taken")),
                ("oldest_ready", models.DurationField(null=True, verbose_name="oldest ready")),
                ("oldest_held", models.DurationField(null=True, verbose_name="oldest held")),
                ("layers", models.JSONField(verbose_name="layers")),
                _lane(),
            ],
            options={
                "verbose_name": "sample of a lane",
                "verbose_name_plural": "samples of lanes",
                "indexes": [models.Index(fields=["minute"], name="lane_sample_age")],
                "constraints": [models.UniqueConstraint(fields=("lane", "minute"), name="lane_sample_once")],
            },
        ),
        migrations.CreateModel(
            name="LaneTotal",
            fields=[
                _key(),
                ("code", models.CharField(max_length=40, verbose_name="code")),
                ("number", models.BigIntegerField(verbose_name="number")),
                _lane(),
            ],
            options={
                "verbose_name": "total of a lane",
                "verbose_name_plural": "totals of lanes",
                "constraints": [
                    models.UniqueConstraint(fields=("lane", "code"), name="lane_total_once"),
                    models.CheckConstraint(condition=models.Q(("code", ""), _negated=True), name="lane_total_named"),
                ],
            },
        ),
        migrations.CreateModel(
            name="WaitingDue",
            fields=[
                _key(),
                ("minute", models.DateTimeField(verbose_name="minute")),
                ("severity", models.PositiveSmallIntegerField(verbose_name="severity")),
                ("number", models.BigIntegerField(verbose_name="number")),
                _lane(),
            ],
            options={
                "verbose_name": "waiting by deadline",
                "verbose_name_plural": "waiting by deadline",
                "constraints": [
                    models.UniqueConstraint(fields=("lane", "minute", "severity"), name="waiting_due_once")
                ],
            },
        ),
        # Written and emptied all the time: its dead rows must not lie about until a fifth of a small table is dead.
        migrations.RunSQL(
            "ALTER TABLE queue_core_figurechange SET (autovacuum_vacuum_scale_factor = 0,"
            " autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0)",
            migrations.RunSQL.noop,
        ),
    ]

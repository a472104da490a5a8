"""The longest wait with people, and of what rests, each found by one probe."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models

#: A job with an open item is never queued anew.
FILL = """
UPDATE queue_core_item i SET queued_at = j.queued_at FROM queue_core_job j
WHERE j.id = i.job_id AND i.closed_at IS NULL AND i.queued_at IS NULL;
"""


class Migration(migrations.Migration):
    atomic = False  # for indexes that are built while claims go on

    dependencies = [("queue_core", "0012_audit_indexes")]

    operations = [
        migrations.AddField(
            "item",
            "queued_at",
            models.DateTimeField(
                null=True,
                help_text="The job's: since when its ticket waits. No requeue moves it while the item is open.",
            ),
        ),
        migrations.RunSQL(FILL, migrations.RunSQL.noop),
        AddIndexConcurrently(
            "item",
            models.Index(
                fields=["lane", "queued_at"],
                name="item_longest",
                condition=models.Q(("closed_at__isnull", True), models.Q(("kind", "blind"), _negated=True)),
            ),
        ),
        AddIndexConcurrently(
            "job",
            models.Index(
                fields=["lane", "queued_at"],
                name="job_resting",
                condition=models.Q(("available_at__isnull", False), ("state", "WAITING")),
            ),
        ),
    ]

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    """Built beside a live system: an ordinary index would keep every claim waiting while it reads the attempts."""

    atomic = False
    dependencies = [("queue_core", "0016_right_to_the_audit")]

    operations = [
        AddIndexConcurrently(
            model_name="attempt",
            index=models.Index(
                condition=models.Q(("outcome__in", ("timeout", "lease_expired", "unknown"))),
                fields=["lane", "ended_at"],
                name="attempt_unknown",
            ),
        ),
    ]

"""Under which ticket's name a refused line is kept, so that an erasure finds it. Lines that are there name none.

They are searched for the id, as lines that are too broken to name one are, until they are forgotten within a week.
"""

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("queue_core", "0025_indexes_without_nulls")]

    operations = [
        migrations.AddField("importrefusal", "ticket", models.CharField(max_length=32, null=True)),
        migrations.AddIndex(
            "importrefusal",
            models.Index(fields=["ticket"], name="import_refusal_ticket", condition=Q(raw__isnull=False)),
        ),
        # No column changes: what the limit counts.
        migrations.AlterField(
            "apikey",
            "rate",
            models.PositiveIntegerField(
                default=1200,
                help_text="A call that sends many tickets counts once for each 500 of them.",
                validators=[MinValueValidator(1), MaxValueValidator(60000)],
                verbose_name="calls per minute",
            ),
        ),
    ]

"""What the limits of a stage mean where they are left empty. No column changes."""

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("queue_core", "0023_imports")]

    operations = [
        migrations.AlterField(
            "stage",
            "max_disagreement",
            models.FloatField(
                blank=True,
                help_text=(
                    "The largest share of blind checks in which people may have decided otherwise, from 0 to 1: 0.2 is "
                    "one in five. Empty: not judged."
                ),
                null=True,
                validators=[MinValueValidator(0.0), MaxValueValidator(1.0)],
                verbose_name="most disagreement",
            ),
        ),
        migrations.AlterField(
            "stage",
            "max_share_shift",
            models.FloatField(
                blank=True,
                help_text=(
                    "How far the shares of APPROVED, REJECTED and MANUAL may lie from the lane's usual ones for this "
                    "time of the week, for example 0.2. Empty: 0.3 where the lane has usual shares when the stage "
                    "starts. 1: anything."
                ),
                null=True,
                validators=[MinValueValidator(0.01), MaxValueValidator(1.0)],
                verbose_name="most shift of a result's share",
            ),
        ),
        migrations.AlterField(
            "stage",
            "max_wrong_ratio",
            models.FloatField(
                blank=True,
                help_text=(
                    "A larger share of wrong results than this puts the lane on hold. Empty: 0.2 where the lane has "
                    "known answers when the stage starts. 1: they are sent, and however many are wrong nothing follows."
                ),
                null=True,
                validators=[MinValueValidator(0.0), MaxValueValidator(1.0)],
                verbose_name="most wrong known answers",
            ),
        ),
    ]

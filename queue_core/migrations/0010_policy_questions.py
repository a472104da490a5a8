"""What a policy asks the model stands beside how it judges the answers. Policies of before ask nothing."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("queue_core", "0009_endpoints_and_deliveries")]

    operations = [
        migrations.AddField(
            model_name="policy",
            name="questions",
            field=models.JSONField(
                blank=True,
                db_default=models.Value([], models.JSONField()),
                default=list,
                verbose_name="questions",
            ),
        ),
    ]

"""How many attempts waiting jobs have left begins with what the ledger says, as the other figures did."""

from django.db import migrations

LEFT = """
INSERT INTO queue_core_lanetotal (lane_id, code, number)
SELECT lane_id, 'left.' || least(max_attempts - attempts, 10), count(*) FROM queue_core_job WHERE state = 'WAITING'
GROUP BY 1, 2;
"""


class Migration(migrations.Migration):
    dependencies = [("queue_core", "0014_marks_of_a_run")]

    operations = [migrations.RunSQL(LEFT, "DELETE FROM queue_core_lanetotal WHERE code LIKE 'left.%'")]

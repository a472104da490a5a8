"""The table of jobs is vacuumed after so many claims, not after a fifth of the backlog.

A claimed job leaves its entry at the head of its lane's index of waits, where nothing is ever put in again: only a
vacuum takes it out. At 1,000,000 jobs the usual share let 200,000 gather, 5,000,000 jobs a million, and each look of a
page at the longest wait read all of them. The indexes are cleaned each time: their dead entries stand close together,
in so few pages that a vacuum would else leave them for later.
"""

from django.db import migrations

SETTINGS = "autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 20000, vacuum_index_cleanup = on"
NAMES = "autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold, vacuum_index_cleanup"


class Migration(migrations.Migration):
    dependencies = [("queue_core", "0031_claims_in_one_statement")]

    operations = [
        migrations.RunSQL(
            ["SET LOCAL lock_timeout = '5s'", f"ALTER TABLE queue_core_job SET ({SETTINGS})"],
            ["SET LOCAL lock_timeout = '5s'", f"ALTER TABLE queue_core_job RESET ({NAMES})"],
        ),
    ]

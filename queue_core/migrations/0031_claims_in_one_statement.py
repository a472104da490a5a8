"""A claim locks its lane and counts the lane's running leases in one statement.

A statement sees what was committed when it began. One that has waited for the lane's row would count without the leases
that were given meanwhile, and go beyond the cap. A function that is VOLATILE looks anew with each of its queries, so
that a count asked of it after the lock is right. Rejected: counting in a statement of its own behind the lock, as it
was, which needs a transaction around it: five messages to the server where two do.

The conditions of the guards that each claim and completion meet are read by the server for each statement anew, by
their length. What a row is about is compared only where a statement sets it, which no worker does: triggers of columns
fire by what is set, whatever its value.
"""

from django.db import migrations

#: Seats that are left under a lane's cap, and its oldest open attempt. NULL where its connection has a cap too, which
#: is counted under a lock of its own. No open attempt has a smaller key than `since`: under the lane's lock keys are
#: given in order, and what is closed stays closed. So an old snapshot, which keeps closed rows in the index, costs no
#: more than what was closed since that was last looked at.
ROOM = """
CREATE FUNCTION queue_core_room(
  of_lane bigint, of_connection bigint, of_cap bigint, moment timestamptz, since bigint)
RETURNS bigint[] LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  RETURN (
    SELECT CASE WHEN c.total_cap IS NULL THEN ARRAY[of_cap - running.number, running.oldest] END
    FROM queue_core_modelconnection c, (
      SELECT count(*) FILTER (WHERE a.lease_until > moment) AS number, min(a.id) AS oldest
      FROM queue_core_attempt a
      WHERE a.lane_id = of_lane AND a.ended_at IS NULL AND a.id >= since) running
    WHERE c.id = of_connection);
END $$;
DO $$
BEGIN
  EXECUTE format(
    'ALTER FUNCTION queue_core_room(bigint, bigint, bigint, timestamptz, bigint) SET search_path = %I, pg_temp',
    current_schema());
END $$;
ALTER FUNCTION queue_core_room(bigint, bigint, bigint, timestamptz, bigint) SET enable_seqscan = off;
"""
NO_ROOM = "DROP FUNCTION queue_core_room(bigint, bigint, bigint, timestamptz, bigint);"

JOB = ("id", "ticket_id", "lane_id", "evidence_id", "revision", "round", "added_at")
ATTEMPT = (
    "id", "job_id", "lane_id", "fence", "key", "worker", "run_id", "policy_id", "connection_id", "number", "started_at",
)  # fmt: skip
USUAL_STEP = """
(OLD.state = 'WAITING' AND NEW.state = 'LEASED' AND NEW.fence = OLD.fence + 1
 OR OLD.state = 'LEASED' AND NEW.state = 'DONE' AND NEW.fence = OLD.fence)
"""


def differ(columns: tuple[str, ...]) -> str:
    new, old = (", ".join(f"{row}.{column}" for column in columns) for row in ("NEW", "OLD"))
    return f"({new}) IS DISTINCT FROM ({old})"


def trigger(name: str, table: str, when: str, *, of: tuple[str, ...] = ()) -> str:
    columns = f" OF {', '.join(of)}" if of else ""
    return (
        f"CREATE TRIGGER queue_core_guard_{name} BEFORE UPDATE{columns} ON queue_core_{table}"
        f" FOR EACH ROW WHEN ({when}) EXECUTE FUNCTION queue_core_guard_{table}();\n"
    )


NO_TRIGGERS = """
DROP TRIGGER queue_core_guard_job ON queue_core_job;
DROP TRIGGER queue_core_guard_attempt ON queue_core_attempt;
"""
TRIGGERS = (
    NO_TRIGGERS
    + trigger("job", "job", f"NOT {USUAL_STEP}")
    + trigger("named_job", "job", differ(JOB), of=JOB)
    + trigger("attempt", "attempt", "OLD.ended_at IS NOT NULL")
    + trigger("named_attempt", "attempt", differ(ATTEMPT), of=ATTEMPT)
)
AS_BEFORE = (
    NO_TRIGGERS
    + "DROP TRIGGER queue_core_guard_named_job ON queue_core_job;\n"
    + "DROP TRIGGER queue_core_guard_named_attempt ON queue_core_attempt;\n"
    + trigger("job", "job", f"{differ(JOB)} OR NOT {USUAL_STEP}")
    + trigger("attempt", "attempt", f"OLD.ended_at IS NOT NULL OR {differ(ATTEMPT)}")
)


class Migration(migrations.Migration):
    dependencies = [("queue_core", "0030_narrower_guards")]

    operations = [migrations.RunSQL(ROOM + TRIGGERS, NO_ROOM + AS_BEFORE)]

"""What holds between a job and its attempts: the contract, read back from its rows."""

from django.utils.translation import gettext_lazy as _

from queue_core.ledger.rules import Rule, in_sql
from queue_core.models import Attempt, Job

IDENTITY = """
SELECT j.id FROM queue_core_job j
JOIN queue_core_evidence e ON e.id = j.evidence_id JOIN queue_core_ticket t ON t.id = j.ticket_id
WHERE j.id = ANY(%(ids)s::bigint[]) AND (
  (e.ticket_id, e.revision) <> (j.ticket_id, j.revision)
  OR j.state IN ('WAITING', 'LEASED') AND (
    j.revision <> t.current_revision OR t.withdrawn_at IS NOT NULL
    OR EXISTS (SELECT FROM queue_core_job n
               WHERE n.ticket_id = j.ticket_id AND n.revision = j.revision AND n.round > j.round)))
"""

FENCES = """
SELECT j.id FROM queue_core_job j
CROSS JOIN LATERAL (
  SELECT count(*) AS n, coalesce(min(a.fence), 1) AS low, coalesce(max(a.fence), 0) AS high
  FROM queue_core_attempt a WHERE a.job_id = j.id) a
WHERE j.id = ANY(%(ids)s::bigint[]) AND (a.n, a.low, a.high) IS DISTINCT FROM (j.fence, 1::bigint, j.fence)
"""

#: A claim on terms of its own (traces give a budget for one call) may go beyond the job's budget; a hold that refuses
#: its result then gives back more than one, so that what waits has a try left.
CHARGED = """
SELECT j.id FROM queue_core_job j
CROSS JOIN LATERAL (
  SELECT count(*) FILTER (WHERE a.is_charged) AS n, coalesce(bool_or(a.number > j.max_attempts), FALSE) AS is_beyond
  FROM queue_core_attempt a WHERE a.job_id = j.id AND a.started_at >= j.queued_at) a
WHERE j.id = ANY(%(ids)s::bigint[]) AND a.n <> j.attempts AND NOT (a.is_beyond AND j.attempts < a.n)
"""

COMMITTED = """
SELECT j.id FROM queue_core_job j
CROSS JOIN LATERAL (
  SELECT count(*) AS n, max(a.fence) AS fence, max(a.ended_at) AS ended_at
  FROM queue_core_attempt a WHERE a.job_id = j.id AND a.is_committed) c
WHERE j.id = ANY(%(ids)s::bigint[]) AND CASE j.state
  WHEN 'DONE' THEN (c.n, c.fence, c.ended_at) IS DISTINCT FROM (1::bigint, j.fence, j.finished_at)
  ELSE c.n > 0 END
"""

#: A lease that expired may have had its attempt closed by a sweep, and stays LEASED until it is taken over.
LEASE = """
SELECT j.id FROM queue_core_job j
LEFT JOIN queue_core_attempt a ON a.job_id = j.id AND a.fence = j.fence
WHERE j.id = ANY(%(ids)s::bigint[]) AND j.state = 'LEASED' AND (
  a.id IS NULL OR a.outcome NOT IN ('lease_expired', 'unknown')
  OR a.outcome IS DISTINCT FROM 'unknown' AND a.lease_until <> j.lease_until)
"""

#: An attempt that only marks a fence raised without a claim. It never was a lease.
MARK = "coalesce({0}.outcome = 'fence_raised' OR {0}.outcome = 'unknown' AND {0}.lease_until = {0}.started_at, FALSE)"

#: What ended keeps the last end of its lease, and no result came after its deadline.
LEASE_END = f"""
SELECT j.id FROM queue_core_job j
LEFT JOIN queue_core_attempt a ON a.job_id = j.id AND a.fence = j.fence
WHERE j.id = ANY(%(ids)s::bigint[]) AND j.state <> 'LEASED' AND (
  a.lease_until <> j.lease_until AND NOT {MARK.format("a")}
  OR j.state = 'DONE' AND NOT coalesce(j.finished_at < j.lease_until AND j.lease_until <= j.deadline, FALSE))
"""  # noqa: S608  (a condition of ours)

#: Work that was superseded or withdrawn keeps its seat until its holder reports or its lease is swept.
LEFT_OPEN = """
SELECT j.id FROM queue_core_job j
WHERE j.id = ANY(%(ids)s::bigint[]) AND EXISTS (
  SELECT FROM queue_core_attempt a WHERE a.job_id = j.id AND a.ended_at IS NULL
    AND NOT (a.fence = j.fence AND (
      j.state = 'LEASED' OR coalesce(j.dead_reason IN ('superseded', 'withdrawn'), FALSE))))
"""

MACHINE_DECISION = """
SELECT j.id FROM queue_core_job j
CROSS JOIN LATERAL (
  SELECT count(*) AS n, bool_and(d.verdict = j.result) AS is_same
  FROM queue_core_decision d WHERE d.job_id = j.id AND d.attempt_id IS NOT NULL) d
WHERE j.id = ANY(%(ids)s::bigint[]) AND CASE
  WHEN j.result IN ('APPROVED', 'REJECTED') THEN d.n <> 1 OR d.is_same IS NOT TRUE
  ELSE d.n > 0 END
"""

#: The item that the very end of the job opened, in its transaction. Whether it is still open is the item's affair.
HANDED_OVER = """
SELECT j.id FROM queue_core_job j
WHERE j.id = ANY(%(ids)s::bigint[])
  AND (j.result = 'MANUAL' OR j.dead_reason IN ('deadline', 'attempts', 'pulled'))
  AND NOT EXISTS (
    SELECT FROM queue_core_item i WHERE i.job_id = j.id AND i.opened_at = j.finished_at
      AND (i.kind <> 'dead' OR i.cause = j.dead_reason)
      AND i.kind = ANY(CASE WHEN j.result = 'MANUAL' THEN ARRAY['manual']
                            WHEN j.dead_reason = 'pulled' THEN ARRAY['pulled', 'urgent'] ELSE ARRAY['dead'] END))
"""

#: What nobody is asked to handle has to be gone at its source, or it is lost in silence. A spent budget may be the one
#: of a single claim; that there was a try holds for every one. A newer revision takes the mark of a withdrawal away.
DIED = """
SELECT j.id FROM queue_core_job j JOIN queue_core_ticket t ON t.id = j.ticket_id
WHERE j.id = ANY(%(ids)s::bigint[]) AND CASE j.dead_reason
  WHEN 'superseded' THEN j.revision = t.current_revision
  WHEN 'withdrawn' THEN j.revision = t.current_revision AND t.withdrawn_at IS NULL
  WHEN 'deadline' THEN j.finished_at < j.deadline
  WHEN 'attempts' THEN j.attempts = 0
  ELSE FALSE END
"""

#: By a person, with a record, or at intake, with an item that says so.
PULLED = """
SELECT j.id FROM queue_core_job j
WHERE j.id = ANY(%(ids)s::bigint[]) AND j.dead_reason = 'pulled'
  AND NOT EXISTS (
    SELECT FROM queue_core_item i WHERE i.job_id = j.id AND i.kind = 'urgent' AND i.opened_at = j.finished_at)
  AND NOT EXISTS (
    SELECT FROM queue_core_auditentry u
    WHERE u.subject_type = 'job' AND u.subject_id = j.id::text AND u.act = 'job.pulled' AND u.at = j.finished_at)
"""

#: What it was moved to last, if anybody did, and what its item was opened with.
DEADLINE = """
SELECT j.id FROM queue_core_job j
CROSS JOIN LATERAL (
  SELECT max(u.id) AS id FROM (
    SELECT id, act FROM queue_core_auditentry
    WHERE subject_type = 'job' AND subject_id = j.id::text OFFSET 0) u
  WHERE u.act IN ('job.requeued', 'job.deadline_moved')) last
LEFT JOIN queue_core_auditentry u ON u.id = last.id
WHERE j.id = ANY(%(ids)s::bigint[]) AND (
  (u.after->>'deadline')::timestamptz <> j.deadline
  OR EXISTS (
    SELECT FROM queue_core_item i
    WHERE i.job_id = j.id AND i.opened_at = j.finished_at AND i.kind IN ('manual', 'dead', 'pulled', 'urgent')
      AND i.deadline <> j.deadline OFFSET 0))
"""

REQUEUES = """
SELECT j.id FROM queue_core_job j
WHERE j.id = ANY(%(ids)s::bigint[]) AND (
  j.requeues <> (SELECT count(*) FROM queue_core_item i WHERE i.job_id = j.id AND i.closed_as = 'requeued')
  OR j.requeues <> (SELECT count(*) FROM queue_core_auditentry u
                    WHERE u.subject_type = 'job' AND u.subject_id = j.id::text AND u.act = 'job.requeued'))
"""

TIMES = """
SELECT a.id FROM queue_core_attempt a
WHERE a.id = ANY(%(ids)s::bigint[]) AND (
  a.lease_until < a.started_at OR a.ended_at < a.started_at
  OR a.is_committed AND a.ended_at >= a.lease_until
  OR a.outcome = 'lease_expired' AND a.ended_at < a.lease_until)
"""

#: One more than were charged before it in its budget, or were until they were given back.
NUMBER = f"""
SELECT a.id FROM queue_core_attempt a JOIN queue_core_job j ON j.id = a.job_id
CROSS JOIN LATERAL (
  SELECT count(*) FILTER (WHERE b.is_charged) AS charged, count(*) FILTER (WHERE NOT {MARK.format("b")}) AS claims,
         coalesce(bool_or(b.number > j.max_attempts), FALSE) AS is_beyond
  FROM queue_core_attempt b WHERE b.job_id = a.job_id AND b.fence < a.fence AND b.started_at >= j.queued_at) b
WHERE a.id = ANY(%(ids)s::bigint[]) AND NOT {MARK.format("a")} AND (
  a.number NOT BETWEEN 1 AND a.fence
  OR a.started_at >= j.queued_at
    AND (a.number > b.claims + 1 OR a.number <= b.charged AND NOT b.is_beyond))
"""  # noqa: S608  (a condition of ours)

PLACE = """
SELECT a.id FROM queue_core_attempt a
LEFT JOIN queue_core_job j ON j.id = a.job_id
LEFT JOIN queue_core_stagerun r ON r.id = a.run_id
LEFT JOIN queue_core_policy p ON p.id = a.policy_id
WHERE a.id = ANY(%(ids)s::bigint[]) AND (j.lane_id <> a.lane_id OR r.lane_id <> a.lane_id OR p.lane_id <> a.lane_id)
"""

RULES = (
    Rule("job_identity", Job, _("is not of its evidence, or open while its revision is not current"), in_sql(IDENTITY)),
    Rule("job_fences", Job, _("its attempts are not one for each fence from 1"), in_sql(FENCES)),
    Rule("job_charged", Job, _("its attempts count is not that of its charged attempts"), in_sql(CHARGED)),
    Rule("job_committed", Job, _("DONE and one committed attempt of its fence do not go together"), in_sql(COMMITTED)),
    Rule("job_lease", Job, _("is LEASED without an open or expired attempt of its fence"), in_sql(LEASE)),
    Rule("job_lease_end", Job, _("ended with another lease or deadline than it had"), in_sql(LEASE_END)),
    Rule("job_left_open", Job, _("an attempt of it is open that nobody may end"), in_sql(LEFT_OPEN)),
    Rule(
        "job_decision",
        Job,
        _("its result and one decision by the machine do not go together"),
        in_sql(MACHINE_DECISION),
    ),
    Rule("job_handed_over", Job, _("ended with a person's work and without an item for it"), in_sql(HANDED_OVER)),
    Rule("job_died", Job, _("is DEAD for a reason that did not happen"), in_sql(DIED)),
    Rule("job_pulled", Job, _("was taken out of the machine's hands by nobody"), in_sql(PULLED)),
    Rule("job_deadline", Job, _("its deadline is not what its record or its item says"), in_sql(DEADLINE)),
    Rule("job_requeues", Job, _("its requeues are not those that people made"), in_sql(REQUEUES)),
    Rule("attempt_times", Attempt, _("ended when its lease did not allow it"), in_sql(TIMES)),
    Rule("attempt_number", Attempt, _("its number is not that of its turn"), in_sql(NUMBER)),
    Rule("attempt_place", Attempt, _("is in another lane than its job, run or policy"), in_sql(PLACE)),
)

"""The statements of intake, for any number of tickets: know again what is stored, then store what is new.

Each is a constant, so that it can be prepared and its plan tested (tests/plans).
"""

#: The time, and the places of those names that are stored. Each name is looked up by itself: planned together while the
#: table was small, they would be found by a walk of it for as long as the plan is kept.
KNOWN = """
SELECT COALESCE(%(now)s::timestamptz, clock_timestamp()), ARRAY(
  SELECT place FROM (
    SELECT place, (
      SELECT id FROM queue_core_ticket t WHERE t.source = given.source AND t.external_id = given.external_id) AS ticket
    FROM unnest(%(sources)s::text[], %(ids)s::text[]) WITH ORDINALITY AS given(source, external_id, place)) named
  WHERE ticket IS NOT NULL)
"""

#: New tickets with their evidence, jobs and figures. Where another call was first, its row counts: this one waits for
#: it, and leaves out that ticket's evidence and job. Its rows tell what was stored; `figures` are those of all, and
#: written only where all were. Names are stored in one order whatever the call's, so that two calls never wait for each
#: other; jobs are numbered in the call's own. The keys are drawn before they are written, so that no step joins
#: another's rows, and asked for in a way that is answered from a hash (an IN alone is made a join of unknown sizes).
STORE = """
WITH given AS MATERIALIZED (
  SELECT g.*, nextval('queue_core_ticket_id_seq') AS ticket, nextval('queue_core_evidence_id_seq') AS evidence,
         nextval('queue_core_job_id_seq') AS job
  FROM json_to_recordset(%(rows)s::json) AS g(
    place int, source text, external_id text, revision text, lane bigint, severity smallint, category text,
    source_kind text, exposure text, deadline_kind text, since timestamptz, body text, size int, digest text,
    is_restricted boolean, deadline timestamptz, urgency timestamptz, max_attempts int)),
stored AS (
  INSERT INTO queue_core_ticket
    (id, source, external_id, current_revision, lane_id, severity, category, source_kind, exposure, deadline_kind,
     first_seen_at)
  SELECT ticket, source, external_id, revision, lane, severity, category, source_kind, exposure, deadline_kind, since
  FROM given ORDER BY source COLLATE "C", external_id COLLATE "C"
  ON CONFLICT (source, external_id) DO NOTHING
  RETURNING id),
sealed AS (
  INSERT INTO queue_core_evidence (id, ticket_id, revision, body, size, digest, is_restricted, received_at)
  SELECT evidence, ticket, revision, body, size, digest, is_restricted, %(now)s
  FROM given WHERE (ticket IN (SELECT id FROM stored)) IS TRUE),
queued AS (
  INSERT INTO queue_core_job
    (id, lane_id, ticket_id, evidence_id, revision, severity, added_at, queued_at, deadline, urgency, max_attempts)
  SELECT job, lane, ticket, evidence, revision, severity, %(now)s, since, deadline, urgency, max_attempts
  FROM given WHERE (ticket IN (SELECT id FROM stored)) IS TRUE),
figures AS (
  INSERT INTO queue_core_figurechange (lane_id, minute, counts, totals, due)
  SELECT f.* FROM json_to_recordset(%(figures)s::json) AS f(
    lane bigint, minute timestamptz, counts jsonb, totals jsonb, due jsonb)
  WHERE (SELECT count(*) FROM stored) = %(number)s)
SELECT place, ticket, evidence, job FROM given WHERE (ticket IN (SELECT id FROM stored)) IS TRUE ORDER BY place
"""

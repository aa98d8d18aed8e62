-- A compaction has failed: its lease is over, and the month waits from p_since, longer with each failure in a row.
-- p_error: {code, message}. The caller has locked it.
create or replace function app.insight_compaction_failed(k app.insight_compactions, p_error jsonb, p_since timestamptz)
  returns void
  language sql
as $$
  update app.insight_compactions
    set lease_expires_at = null, segments = '[]', failure_count = failure_count + 1,
      last_error = p_error || jsonb_build_object('at', p_since),
      due_at = p_since + app.insight_backoff(failure_count + 1)
    where organization_id = k.organization_id and source_id = k.source_id and month = k.month
$$;

-- A unit has failed: leased → p_state (failed, expired). What it was of waits, longer with each failure in a row, and as long as the
-- provider says (p_retry_not_before), which holds for the whole connector. A failure that is not the provider's, nor ours to mend, does
-- not count (error.isOurs). The caller has locked connector and source.
create or replace function app.insight_unit_failed(u app.insight_units, p_state text, p_error jsonb, p_retry_not_before timestamptz)
  returns void
  language plpgsql
as $$
declare
  v_now constant timestamptz := clock_timestamp();
  v_counts constant integer := (not coalesce((p_error ->> 'isOurs')::boolean, false))::integer;
  v_error constant jsonb := jsonb_build_object('at', v_now, 'message', p_error ->> 'message', 'code',
    p_error ->> 'code');
begin
  perform app.insight_unit_end(u, p_state, jsonb_build_object('error', v_error - 'at'));
  if u.mode = 'discovery' then
    update app.insight_connectors
      set failure_count = failure_count + v_counts, last_error = v_error,
        discovery_due_at = greatest(v_now + app.insight_backoff(failure_count + v_counts), p_retry_not_before)
      where organization_id = u.organization_id and integration_id = u.integration_id;
  elsif exists (
      select from app.insight_sources
        where organization_id = u.organization_id and id = u.source_id and integration_id = u.integration_id) then
    update app.insight_cursors
      set failure_count = failure_count + v_counts,
        due_at = greatest(v_now + app.insight_backoff(failure_count + v_counts), p_retry_not_before)
      where organization_id = u.organization_id and source_id = u.source_id and mode = u.mode::text;
    update app.insight_sources
      set failure_count = failure_count + v_counts, last_error = v_error, updated_at = v_now
      where organization_id = u.organization_id and id = u.source_id;
  end if;
  update app.insight_connectors set retry_not_before = p_retry_not_before
    where organization_id = u.organization_id and integration_id = u.integration_id and p_retry_not_before is not null;
  perform app.insight_connector_settle(u.organization_id, u.integration_id);
end
$$;

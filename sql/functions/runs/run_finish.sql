-- Run starting | running → p_status, with everything that the last call of its worker reported. Run request started →
-- p_request_state (finished | cancelled), which ends the lease and the capability; null: the caller changes the request.
-- p_call: complete | fail. A cancelled run only gets the report; p_status is cancelled then.
-- The caller has locked roots and request.
create or replace function app.run_finish(
  r app.run_requests, p_status text, p_call text, p_body_hash text, p_output jsonb, p_error jsonb, p_report jsonb,
  p_request_state text default 'finished')
  returns void
  language plpgsql
as $$
declare
  v_spend_limited boolean;
begin
  update app.runs
    set status = p_status,
      finished_at = coalesce(finished_at, clock_timestamp()), updated_at = clock_timestamp(),
      finish_call = p_call, finish_hash = p_body_hash, output = p_output, error = p_error,
      receipts = p_report -> 'receipts',
      harness = coalesce(p_report ->> 'harness', harness),
      workspace_uri = coalesce(p_report ->> 'workspaceUri', workspace_uri),
      -- The log ends with its run, whether or not the worker says so.
      log_state = case when log_state = 'truncated' then log_state
        else coalesce(p_report ->> 'logState', case log_state when 'recording' then 'complete' else log_state end) end,
      input_tokens = coalesce((p_report #>> '{usage,inputTokens}')::bigint, 0),
      output_tokens = coalesce((p_report #>> '{usage,outputTokens}')::bigint, 0),
      tool_calls = coalesce((p_report #>> '{usage,toolCalls}')::bigint, 0),
      cost_minor_units = coalesce((p_report #>> '{usage,costMinorUnits}')::bigint, 0),
      cost_known = coalesce((p_report #>> '{usage,costKnown}')::boolean, p_report #> '{usage,costMinorUnits}' is not null)
    where organization_id = r.organization_id and id = r.run_id
    returning spend_limited into v_spend_limited;
  if v_spend_limited then
    perform app.task_spend_add(r.organization_id, r.run_id);
  end if;
  if p_request_state is not null then
    update app.run_requests
      set state = p_request_state, finished_at = clock_timestamp(), lease_secret_hash = null, lease_expires_at = null
      where organization_id = r.organization_id and id = r.id;
  end if;
end
$$;

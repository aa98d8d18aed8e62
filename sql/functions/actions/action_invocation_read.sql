-- What became of the read that somebody else has begun, for whoever waits for it. p_lease_id: that of the one who began it.
-- Returns {state: running | responded | failed | over, response, responseKey, failure}; over: it came to nothing (its lease has ended,
-- another one has begun it, or its arguments were refused), and the caller begins it anew.
-- Locks: none. Codes: 401 agent_unauthorized.
create or replace function app.action_invocation_read(
  p_organization_id uuid, p_token_hash text, p_integration_id uuid, p_invocation_id text, p_lease_id uuid)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_run_id uuid;
  n app.action_invocations;
begin
  v_run_id := (app.integration_capability_check(p_organization_id, p_token_hash, p_integration_id, 'cli')
    #>> '{execution,runId}')::uuid;
  select * into n from app.action_invocations
    where organization_id = p_organization_id and run_id = v_run_id and integration_id = p_integration_id
      and invocation_id = p_invocation_id;
  return jsonb_build_object('state', case
      when n.response is not null or n.response_key is not null then 'responded'
      when n.lease_id is distinct from p_lease_id then 'over'
      when n.failure is not null then 'failed'
      when n.lease_expires_at > clock_timestamp() then 'running'
      else 'over' end,
    'response', n.response, 'responseKey', n.response_key, 'failure', n.failure);
end
$$;

-- Invocation of a read (none) → begun, under a lease: whoever holds it calls the provider. Called by many at once, with one body, one of
-- them begins and the others wait for its outcome (action_invocation_read). One that has responded responds with the same; one that
-- failed, or whose lease has ended without an outcome, begins anew. Of a write nothing is bound here: action_propose does that.
-- p_seconds: the lease.
-- Returns {state: begun | running | responded | write, leaseId (of whoever has begun it), response, responseKey, tool: {key, effect,
-- inputSchema, digest}}, with what integration_capability_check returns.
-- Locks: integration (shared), invocation.
-- Codes: 401 agent_unauthorized, 404 tool_not_found, 409 state_conflict (differs; stale_epoch, or why it is not available).
create or replace function app.action_invocation_begin(
  p_organization_id uuid, p_token_hash text, p_integration_id uuid, p_invocation_id text, p_body_sha256 text, p_tool text,
  p_lease_id uuid, p_seconds integer)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_now timestamptz;
  v_call jsonb;
  v_reason text;
  v_run_id uuid;
  i app.integrations;
  c app.integration_connections;
  t app.integration_tools;
  n app.action_invocations;
begin
  -- It may not be deleted between the check and the row that names it.
  select * into i from app.integrations where organization_id = p_organization_id and id = p_integration_id for key share;
  v_call := app.integration_capability_check(p_organization_id, p_token_hash, p_integration_id, 'cli');
  v_run_id := (v_call #>> '{execution,runId}')::uuid;
  n := app.action_invocation_find(p_organization_id, v_run_id, p_integration_id, p_invocation_id, p_body_sha256);
  select * into t from app.integration_tools
    where organization_id = p_organization_id and integration_id = p_integration_id and key = p_tool;
  if not found or not t.enabled then
    perform app.fail(404, 'tool_not_found', 'The integration has no such tool for this execution');
  end if;
  v_call := v_call || jsonb_build_object('tool', jsonb_build_object(
    'key', t.key, 'effect', t.effect, 'inputSchema', t.input_schema, 'digest', t.digest));
  if t.effect = 'write' then
    return v_call || '{"state": "write"}';
  elsif n.action_id is not null then
    perform app.fail(409, 'state_conflict', 'This invocation proposed an action, and the tool reads by now',
      app.issue('invocationId', 'differs', 'call the tool under another name'));
  end if;
  select * into c from app.integration_connections where organization_id = p_organization_id and integration_id = p_integration_id;
  v_reason := coalesce(app.integration_tool_unavailable(i, c, t), case
    when not v_call -> 'policies' ? 'integrations.read' then 'tool_policy' end);
  if v_reason is not null then
    perform app.fail(409, 'state_conflict', 'The tool is not available to this execution',
      app.issue('tool', v_reason, format('is not available (%s)', v_reason)));
  end if;
  v_now := clock_timestamp();
  insert into app.action_invocations as k (organization_id, run_id, integration_id, invocation_id, body_sha256, lease_id,
      lease_expires_at)
    values (p_organization_id, v_run_id, p_integration_id, p_invocation_id, p_body_sha256, p_lease_id,
      v_now + make_interval(secs => p_seconds))
    on conflict on constraint action_invocations_pkey do update
      set lease_id = excluded.lease_id, lease_expires_at = excluded.lease_expires_at, failure = null
      where k.body_sha256 = excluded.body_sha256 and k.response is null and k.response_key is null
        and (k.lease_expires_at is null or k.lease_expires_at <= v_now)
    returning * into n;
  if found then
    return v_call || jsonb_build_object('state', 'begun', 'leaseId', p_lease_id);
  end if;
  n := app.action_invocation_find(p_organization_id, v_run_id, p_integration_id, p_invocation_id, p_body_sha256);
  return v_call || jsonb_build_object('state', case
      when n.response is not null or n.response_key is not null then 'responded' else 'running' end,
    'leaseId', n.lease_id, 'response', n.response, 'responseKey', n.response_key);
end
$$;

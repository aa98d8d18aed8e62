-- Invocation (none) → bound to its body: what a read needs before the provider is called. Bound already, the same body is a repeat,
-- and another one is refused. Returns {bound, actionId}, with what integration_capability_check returns; bound false: a repeat.
-- Locks: integration (shared). Codes: 401 agent_unauthorized, 409 state_conflict (differs; stale_epoch, or why it is not available).
create or replace function app.action_invocation_bind(
  p_organization_id uuid, p_token_hash text, p_integration_id uuid, p_kind text, p_invocation_id text, p_body_sha256 text)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_bound boolean;
  v_call jsonb;
  n app.action_invocations;
begin
  -- It may not be deleted between the check and the row that names it.
  perform 1 from app.integrations where organization_id = p_organization_id and id = p_integration_id for key share;
  v_call := app.integration_capability_check(p_organization_id, p_token_hash, p_integration_id, p_kind);
  insert into app.action_invocations (organization_id, run_id, integration_id, invocation_id, body_sha256)
    values (p_organization_id, (v_call #>> '{execution,runId}')::uuid, p_integration_id, p_invocation_id, p_body_sha256)
    on conflict do nothing;
  v_bound := found;
  n := app.action_invocation_find(p_organization_id, (v_call #>> '{execution,runId}')::uuid, p_integration_id, p_invocation_id,
    p_body_sha256);
  return v_call || jsonb_build_object('bound', v_bound, 'actionId', n.action_id);
end
$$;

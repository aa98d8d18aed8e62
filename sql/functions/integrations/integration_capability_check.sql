-- Judges a capability of the gateway at a call: its end, the lease of its execution, the epoch, the connection, and whether the
-- integration is still available to the profile. All refusals are alike, but for those of the integration itself.
-- Returns {execution: {runId, taskId, chatId, mode, agentProfileId}, integration: {id, key, provider, accessMode, settings,
-- connectionRevision}, policies}. Locks: none.
-- Codes: 401 agent_unauthorized, 409 state_conflict (stale_epoch, or why it is not available).
create or replace function app.integration_capability_check(
  p_organization_id uuid, p_token_hash text, p_integration_id uuid, p_kind text)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_reason text;
  o app.organizations;
  g app.integration_gateway_capabilities;
  i app.integrations;
  c app.integration_connections;
  p app.agent_profiles;
  r app.run_requests;
begin
  select * into g from app.integration_gateway_capabilities
    where organization_id = p_organization_id and token_hash = p_token_hash and integration_id = p_integration_id
      and kind = p_kind;
  if found then
    select * into r from app.run_requests
      where organization_id = p_organization_id and run_id = g.run_id and state = 'started';
    select * into o from app.organizations where id = p_organization_id and deleted_at is null;
  end if;
  if o.id is null or r.id is null or g.expires_at <= clock_timestamp() or r.cancel_requested_at is not null
     or r.lease_expires_at <= clock_timestamp() then
    perform app.fail(401, 'agent_unauthorized', 'The gateway capability is not valid');
  end if;
  select * into i from app.integrations where organization_id = p_organization_id and id = g.integration_id;
  select * into c from app.integration_connections where organization_id = p_organization_id and integration_id = i.id;
  select * into p from app.agent_profiles where organization_id = p_organization_id and id = g.agent_profile_id;
  v_reason := case
    when o.status = 'suspended' then 'suspended'
    when g.authorization_epoch <> o.authorization_epoch or g.connection_revision <> i.connection_revision then 'stale_epoch'
    else app.integration_unavailable(i, c, p, o.constraints -> 'allowedIntegrations') end;
  if v_reason is not null then
    perform app.fail(409, 'state_conflict', 'The integration is not available to this execution any more',
      app.issue('integrationId', v_reason, 'resolve it again'));
  end if;
  return jsonb_build_object(
    'execution', jsonb_build_object('runId', r.run_id, 'taskId', r.task_id, 'chatId', r.chat_id, 'mode', r.mode,
      'agentProfileId', p.id),
    'integration', jsonb_build_object('id', i.id, 'key', i.key, 'provider', i.provider, 'accessMode', i.access_mode,
      'settings', i.settings, 'connectionRevision', i.connection_revision),
    'policies', p.config -> 'toolPolicyKeys');
end
$$;

-- Gives an execution a capability for the gateway (docs/interface.md 4.12), of which the digest is stored: p_token_hash. p_run_id: for
-- the service token, the active run that it is for. It lives p_seconds at most; every call checks lease, epoch and connection anew.
-- git: of task runs that do not verify, of profiles with git.read, and of p_git_providers alone. A run has at most 100 that live.
-- Returns {integration, gateway: {integrationId, expiresAt, kind}}.
-- Locks: run request. Codes: 400 validation_failed (no runId), 401 agent_unauthorized, 404 organization_not_found |
-- integration_not_found, 409 state_conflict (stale_epoch, suspended, run_not_active, too_many_capabilities, or
-- why it is not available).
create or replace function app.integration_resolve(
  p_organization_id uuid, p_actor jsonb, p_authorization_epoch integer, p_integration_ref text, p_kind text, p_token_hash text,
  p_run_id uuid, p_seconds integer, p_git_providers jsonb)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_allowed jsonb;
  v_reason text;
  v_expires_at constant timestamptz := clock_timestamp() + make_interval(secs => p_seconds);
  p app.agent_profiles := app.integration_agent_require(p_organization_id, p_actor, p_authorization_epoch);
  i app.integrations;
  c app.integration_connections;
  r app.run_requests;
begin
  if p_actor ->> 'kind' = 'service' and p_run_id is null then
    perform app.fail(400, 'validation_failed', 'The service token needs the run that this is for',
      app.issue('runId', 'required', 'is the run that the capability is for'));
  end if;
  if exists (select from app.organizations where id = p_organization_id and status = 'suspended') then
    perform app.fail(409, 'state_conflict', 'The organization is suspended',
      app.issue('organizationId', 'suspended', 'is suspended'));
  end if;
  i := app.integration_find(p_organization_id, p_integration_ref);
  select * into r from app.run_requests
    where organization_id = p_organization_id and state = 'started'
      and case when p_actor ->> 'kind' = 'capability' then execution_token_hash = p_actor ->> 'tokenHash'
        else run_id = p_run_id end
    for no key update;
  if not found or r.cancel_requested_at is not null or r.lease_expires_at <= clock_timestamp()
     or r.run_id <> coalesce(p_run_id, r.run_id) then
    perform app.fail(409, 'state_conflict', 'The run is not active', app.issue('runId', 'run_not_active', 'is over, or another'));
  end if;
  select * into p from app.agent_profiles where organization_id = p_organization_id and id = r.agent_profile_id;
  select * into c from app.integration_connections where organization_id = p_organization_id and integration_id = i.id;
  select constraints -> 'allowedIntegrations' into v_allowed from app.organizations where id = p_organization_id;
  v_reason := coalesce(app.integration_unavailable(i, c, p, v_allowed), case
    when p_kind = 'git' and r.mode = 'verify' then 'verify_read_only'
    when p_kind = 'git' and r.task_id is null then 'execution'
    when p_kind = 'git' and not p.config -> 'toolPolicyKeys' ? 'git.read' then 'tool_policy'
    when p_kind = 'cli' and not p.config -> 'toolPolicyKeys' ?| array['integrations.read', 'integrations.propose']
      then 'tool_policy'
    when p_kind = 'git' and not p_git_providers ? i.provider then 'no_git' end);
  if v_reason is not null then
    perform app.fail(409, 'state_conflict', 'The integration is not available to this execution',
      app.issue('integrationKey', v_reason, format('is not available (%s)', v_reason)));
  end if;
  if (select count(*) >= 100 from app.integration_gateway_capabilities
      where organization_id = p_organization_id and run_id = r.run_id and expires_at > clock_timestamp()) then
    perform app.fail(409, 'state_conflict', 'The run has as many capabilities as it may',
      app.issue('runId', 'too_many_capabilities', 'has 100: use those, or wait until one ends'));
  end if;
  begin
    insert into app.integration_gateway_capabilities (organization_id, token_hash, integration_id, agent_profile_id, run_id, kind,
        connection_revision, authorization_epoch, expires_at)
      values (p_organization_id, p_token_hash, i.id, p.id, r.run_id, p_kind, i.connection_revision, p_authorization_epoch,
        v_expires_at);
  exception when foreign_key_violation then
    -- Deleted since it was read.
    perform app.fail(404, 'integration_not_found', 'Integration not found');
  end;
  return jsonb_build_object('integration', app.integration_for_agent(i, p, v_allowed),
    'gateway', jsonb_build_object('integrationId', i.id, 'expiresAt', v_expires_at, 'kind', p_kind));
end
$$;

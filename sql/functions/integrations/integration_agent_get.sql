-- One integration, by UUID or key, as an agent may use it. Asks no provider. Returns {integration}. Locks: none.
-- Codes: 401 agent_unauthorized, 404 organization_not_found | integration_not_found, 409 state_conflict (stale_epoch).
create or replace function app.integration_agent_get(
  p_organization_id uuid, p_actor jsonb, p_authorization_epoch integer, p_integration_ref text)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  p app.agent_profiles := app.integration_agent_require(p_organization_id, p_actor, p_authorization_epoch);
begin
  return jsonb_build_object('integration', app.integration_for_agent(
    app.integration_find(p_organization_id, p_integration_ref), p,
    (select constraints -> 'allowedIntegrations' from app.organizations where id = p_organization_id)));
end
$$;

-- A page of an organization's integrations (see integrations_items) as an agent may use them. Asks no provider. Returns
-- {integrations, cut}, each as integration_for_agent gives it. Locks: none.
-- Codes: 401 agent_unauthorized, 404 organization_not_found, 409 state_conflict (stale_epoch).
create or replace function app.integrations_for_agent(
  p_organization_id uuid, p_actor jsonb, p_authorization_epoch integer, p_key text, p_inclusive boolean, p_backward boolean,
  p_limit integer)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_allowed jsonb;
  p app.agent_profiles := app.integration_agent_require(p_organization_id, p_actor, p_authorization_epoch);
begin
  select constraints -> 'allowedIntegrations' into v_allowed from app.organizations where id = p_organization_id;
  return app.integrations_items(p_organization_id, p_key, p_inclusive, p_backward, p_limit, true, p, v_allowed);
end
$$;

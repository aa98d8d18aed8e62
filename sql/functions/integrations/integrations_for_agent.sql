-- A page of an organization's integrations (see integrations_page) as an agent may use them, always in the order of keys. It ends
-- early, `cut`, after 4 MiB of items, and always has one. Asks no provider. Returns {integrations, cut}. Locks: none.
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
  v_items jsonb[] := '{}';
  v_bytes bigint := 0;
  v_cut boolean := false;
  v_item jsonb;
  i app.integrations;
  p app.agent_profiles := app.integration_agent_require(p_organization_id, p_actor, p_authorization_epoch);
begin
  select constraints -> 'allowedIntegrations' into v_allowed from app.organizations where id = p_organization_id;
  for i in select * from app.integrations_page(p_organization_id, p_key, p_inclusive, p_backward, p_limit) loop
    v_cut := v_bytes >= 4194304;
    exit when v_cut;
    v_item := app.integration_for_agent(i, p, v_allowed);
    v_bytes := v_bytes + pg_column_size(v_item);
    v_items := case when p_backward then array_prepend(v_item, v_items) else array_append(v_items, v_item) end;
  end loop;
  return jsonb_build_object('integrations', to_jsonb(v_items), 'cut', v_cut);
end
$$;

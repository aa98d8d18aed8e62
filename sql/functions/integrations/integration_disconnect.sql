-- connected → not_connected: unlinks this connection alone, and removes its secrets; the authorization at the provider stays.
-- A repeat changes nothing. Settings and tools stay. Returns {integration}.
-- What awaits or has an approval is cancelled.
-- Locks: organization → integration → connection → … as actions_cancel_of_integrations.
-- Codes: 404 organization_not_found | integration_not_found.
create or replace function app.integration_disconnect(p_organization_id uuid, p_integration_ref text)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  i app.integrations := app.integration_lock(p_organization_id, p_integration_ref, true);
begin
  if exists (select 1 from app.integration_connections where organization_id = p_organization_id and integration_id = i.id)
     -- A flow under way would connect it again.
     or exists (select 1 from app.integration_oauth_states
       where organization_id = p_organization_id and integration_id = i.id and result is null
         and connection_revision = i.connection_revision) then
    i := app.integration_connection_drop(i);
    perform app.actions_cancel_of_integrations(p_organization_id, array[i.id]);
  end if;
  return jsonb_build_object('integration', app.integration_record(i));
end
$$;

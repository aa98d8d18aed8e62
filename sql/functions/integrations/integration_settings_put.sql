-- Sets what of the provider may be reached. The caller has validated the settings, where there is a connection against the
-- provider, at p_connection_revision. p_disconnect: they name another server, so that the connection goes, and an authorization
-- under way ends in a conflict. p_forget_tools: its tools were the server's own; what an owner decided on them says nothing of those of
-- the other one, whatever they are called. They go with what was discovered. Returns {integration}.
-- Locks: organization → integration → connection → … as actions_cancel_of_integrations (p_disconnect).
-- Codes: 403 provider_forbidden, 404 organization_not_found | integration_not_found, 409 integration_conflict (the connection has
-- changed).
create or replace function app.integration_settings_put(
  p_organization_id uuid, p_integration_ref text, p_connection_revision integer, p_settings jsonb, p_disconnect boolean,
  p_forget_tools boolean)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  i app.integrations := app.integration_lock(p_organization_id, p_integration_ref, true);
begin
  perform app.integration_provider_require(p_organization_id, i.provider);
  perform app.integration_revision_require(i, p_connection_revision);
  if i.settings is distinct from p_settings then
    if p_disconnect then
      i := app.integration_connection_drop(i);
      perform app.actions_cancel_of_integrations(p_organization_id, array[i.id]);
      if p_forget_tools then
        delete from app.integration_tools where organization_id = p_organization_id and integration_id = i.id;
        update app.integrations set discovery_at = null, discovery_status = null, discovery_error = null
          where organization_id = p_organization_id and id = i.id;
      end if;
    end if;
    update app.integrations set settings = p_settings, updated_at = clock_timestamp()
      where organization_id = p_organization_id and id = i.id
      returning * into i;
  end if;
  return jsonb_build_object('integration', app.integration_record(i));
end
$$;

-- Removes an integration with its connection, secrets, tools, flows and capabilities. The authorization at the provider stays, and
-- so do facts that were collected. Actions stay; those that await or have an approval are cancelled. Returns {integration} as it
-- was. Locks: organization → integration → what hangs on it → … as actions_cancel_of_integrations.
-- Codes: 404 organization_not_found | integration_not_found (also for a repeat).
create or replace function app.integration_delete(p_organization_id uuid, p_integration_ref text)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  i app.integrations := app.integration_lock(p_organization_id, p_integration_ref, true);
  v_record constant jsonb := app.integration_record(i);
begin
  delete from app.integrations where organization_id = p_organization_id and id = i.id;
  perform app.actions_cancel_of_integrations(p_organization_id, array[i.id],
    '{"code": "integration_deleted", "message": "Its integration was deleted"}');
  return jsonb_build_object('integration', v_record);
end
$$;

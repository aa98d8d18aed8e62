-- enabled ↔ disabled; a repeat changes nothing. Connection, settings and tools stay. Returns {integration}.
-- Locks: organization → integration. Codes: 404 organization_not_found | integration_not_found.
create or replace function app.integration_status_set(p_organization_id uuid, p_integration_ref text, p_status text)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  i app.integrations := app.integration_lock(p_organization_id, p_integration_ref, true);
begin
  if i.status <> p_status then
    update app.integrations set status = p_status, updated_at = clock_timestamp()
      where organization_id = p_organization_id and id = i.id
      returning * into i;
  end if;
  return jsonb_build_object('integration', app.integration_record(i));
end
$$;

-- An integration, by UUID or key, as its owner sees it. Returns {integration}. Locks: none.
-- Codes: 404 organization_not_found | integration_not_found.
create or replace function app.integration_read(p_organization_id uuid, p_integration_ref text)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
begin
  return jsonb_build_object('integration', app.integration_record(app.integration_find(p_organization_id, p_integration_ref)));
end
$$;

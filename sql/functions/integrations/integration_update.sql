-- Changes an integration, whatever its status; what changes nothing is a repeat. p_patch: {name, departments}, validated in
-- shape. Returns {integration}.
-- Locks: organization → integration. Codes: 404 organization_not_found | integration_not_found.
create or replace function app.integration_update(p_organization_id uuid, p_integration_ref text, p_patch jsonb)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  i app.integrations := app.integration_lock(p_organization_id, p_integration_ref, true);
  n app.integrations := i;
begin
  n.name := coalesce(p_patch ->> 'name', i.name);
  n.departments := coalesce(p_patch -> 'departments', i.departments);
  if n is distinct from i then
    update app.integrations set name = n.name, departments = n.departments, updated_at = clock_timestamp()
      where organization_id = p_organization_id and id = i.id
      returning * into i;
  end if;
  return jsonb_build_object('integration', app.integration_record(i));
end
$$;

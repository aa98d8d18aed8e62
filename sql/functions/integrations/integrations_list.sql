-- A page of an organization's integrations (see integrations_items). Returns {integrations, cut}, each as integration_record gives
-- it. Locks: none.
create or replace function app.integrations_list(
  p_organization_id uuid, p_key text, p_inclusive boolean, p_backward boolean, p_limit integer)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
begin
  return app.integrations_items(p_organization_id, p_key, p_inclusive, p_backward, p_limit, false, null, null);
end
$$;

-- A page of an organization's integrations (see integrations_page), always in the order of keys. Returns {integrations}, each as
-- integration_record gives it. Locks: none.
create or replace function app.integrations_list(
  p_organization_id uuid, p_key text, p_inclusive boolean, p_backward boolean, p_limit integer)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
begin
  return jsonb_build_object('integrations', (
    select coalesce(jsonb_agg(app.integration_record(i) order by i.key), '[]')
      from app.integrations_page(p_organization_id, p_key, p_inclusive, p_backward, p_limit) i));
end
$$;

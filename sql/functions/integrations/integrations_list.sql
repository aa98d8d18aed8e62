-- A page of an organization's integrations by key: at most p_limit, after p_key (null: from the first), or before it and from the last
-- (p_backward); p_inclusive: with p_key itself. Always in the order of keys. Returns {integrations}, each as integration_record
-- gives it. Locks: none.
create or replace function app.integrations_list(
  p_organization_id uuid, p_key text, p_inclusive boolean, p_backward boolean, p_limit integer)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_page jsonb;
begin
  -- Each bound is one that the index of keys begins at, however many come before.
  if not p_backward then
    select jsonb_agg(app.integration_record(i) order by i.key) into v_page
      from (select n.* from app.integrations n
        where n.organization_id = p_organization_id and n.key >= coalesce(p_key, '') and (p_inclusive or n.key <> coalesce(p_key, ''))
        order by n.key limit p_limit) i;
  elsif p_key is null then
    select jsonb_agg(app.integration_record(i) order by i.key) into v_page
      from (select n.* from app.integrations n
        where n.organization_id = p_organization_id
        order by n.key desc limit p_limit) i;
  else
    select jsonb_agg(app.integration_record(i) order by i.key) into v_page
      from (select n.* from app.integrations n
        where n.organization_id = p_organization_id and n.key <= p_key and (p_inclusive or n.key <> p_key)
        order by n.key desc limit p_limit) i;
  end if;
  return jsonb_build_object('integrations', coalesce(v_page, '[]'));
end
$$;

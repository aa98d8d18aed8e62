-- Which of these files of an organization a row names, for the job that removes the others. Null: the organization is deleted or gone, and
-- its files are the deletion's. Reads only.
create or replace function app.insight_objects_named(p_organization_id uuid, p_keys text[])
  returns jsonb
  language plpgsql stable security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
begin
  if not exists (select from app.organizations where id = p_organization_id and deleted_at is null) then
    return 'null';
  end if;
  return (
    select coalesce(jsonb_agg(g.object_key), '[]') from app.insight_segments g
      where g.organization_id = p_organization_id and g.object_key = any (p_keys));
end
$$;

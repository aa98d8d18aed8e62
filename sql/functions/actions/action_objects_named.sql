-- Which of these objects of an organization's invocations a row names, for the job that removes the others: a file, an upload, a kept
-- response, or a file of an action. Null: the organization is deleted or gone, and its objects are the deletion's. Reads only.
create or replace function app.action_objects_named(p_organization_id uuid, p_keys text[])
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
    select coalesce(jsonb_agg(k.key), '[]')
      from unnest(p_keys) k(key)
      where exists (select from app.action_invocation_files f
          where f.organization_id = p_organization_id and f.storage_key = k.key)
        or exists (select from app.action_invocation_files f
          where f.organization_id = p_organization_id and f.upload_key = k.key)
        or exists (select from app.action_invocations n
          where n.organization_id = p_organization_id and n.response_key = k.key)
        or exists (select from app.action_files a
          where a.organization_id = p_organization_id and a.storage_key = k.key));
end
$$;

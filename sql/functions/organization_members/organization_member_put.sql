-- Adds a member or changes its role; the last owner keeps it. Locks: organization. Codes: 404 organization_not_found, 409
-- state_conflict.
create or replace function app.organization_member_put(p_organization_id uuid, p_subject text, p_role text)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  m app.organization_members;
begin
  -- Changes of members exclude each other: two owners that demote each other must not both succeed.
  perform 1 from app.organizations where id = p_organization_id and deleted_at is null for no key update;
  if not found then
    perform app.fail(404, 'organization_not_found', 'Organization not found');
  end if;
  if p_role <> 'owner' and exists (select 1 from app.organization_members where organization_id = p_organization_id
      and subject = p_subject and role = 'owner')
     and (select count(*) from app.organization_members
            where organization_id = p_organization_id and role = 'owner') = 1 then
    perform app.fail(409, 'state_conflict', 'The last owner of an organization stays its owner');
  end if;
  insert into app.organization_members (organization_id, subject, role) values (p_organization_id, p_subject, p_role)
    on conflict (organization_id, subject) do update set role = excluded.role,
      updated_at = case when app.organization_members.role = excluded.role then app.organization_members.updated_at
                        else clock_timestamp() end
    returning * into m;
  return jsonb_build_object('member', to_jsonb(m));
end
$$;

-- Removes a member, except the last owner. Locks: organization. Codes: 404 organization_not_found | not_found, 409
-- state_conflict.
create or replace function app.organization_member_delete(p_organization_id uuid, p_subject text)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  m app.organization_members;
begin
  perform 1 from app.organizations where id = p_organization_id and deleted_at is null for no key update;
  if not found then
    perform app.fail(404, 'organization_not_found', 'Organization not found');
  end if;
  select * into m from app.organization_members where organization_id = p_organization_id and subject = p_subject;
  if not found then
    perform app.fail(404, 'not_found', 'Member not found');
  end if;
  if m.role = 'owner' and (select count(*) from app.organization_members
      where organization_id = p_organization_id and role = 'owner') = 1 then
    perform app.fail(409, 'state_conflict', 'The last owner of an organization stays');
  end if;
  delete from app.organization_members where organization_id = p_organization_id and subject = p_subject;
  return jsonb_build_object('member', to_jsonb(m));
end
$$;

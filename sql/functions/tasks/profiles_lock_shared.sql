-- Before a task enters phase verify: until the end of the transaction no profile of the organization comes, changes or goes, for
-- whoever changes one (under the organization's lock) settles the tasks that it sees in that phase, and would not see this one.
-- Never waits, as it is called under the root's lock, which comes after the organization's: the caller tries again (40001).
create or replace function app.profiles_lock_shared(p_organization_id uuid)
  returns void
  language plpgsql
as $$
begin
  perform 1 from app.organizations where id = p_organization_id for share skip locked;
  if not found then
    raise exception using errcode = '40001', message = 'the organization is being changed';
  end if;
end
$$;

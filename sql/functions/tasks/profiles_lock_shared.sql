-- Call this before a task enters phase verify: until the end of the transaction no profile of the organization is created,
-- changed or deleted. Whoever changes a profile locks the organization and settles the tasks that it sees in phase verify;
-- without this lock it would miss the new one.
-- Never waits, because the caller has locked a root, which comes after the organization in the lock order: raises 40001
-- instead, and the call is retried.
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

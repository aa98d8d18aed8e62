-- Nobody changes an entry, and its organization's purge alone removes it.
create or replace function app.audit_entries_keep()
  returns trigger
  language plpgsql
as $$
begin
  if tg_op = 'DELETE' and old.organization_id <> '00000000-0000-0000-0000-000000000000'
     and not exists (select 1 from app.organizations where id = old.organization_id and deleted_at is null) then
    return old;
  end if;
  raise exception 'an audit entry is never changed, and goes with its organization alone';
end
$$;

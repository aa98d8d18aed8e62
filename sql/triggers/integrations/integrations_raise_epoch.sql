-- What agents may do changes with an integration that comes, goes, or is changed in anything that they are given by. Its name,
-- its discovery and what it means to the organization give nothing.
create or replace function app.integrations_raise_epoch()
  returns trigger
  language plpgsql
as $$
begin
  if tg_op <> 'UPDATE'
     or (new.status, new.access_mode, new.services, new.departments, new.settings, new.connection_revision)
       is distinct from (old.status, old.access_mode, old.services, old.departments, old.settings, old.connection_revision) then
    perform app.authorization_epoch_raise(coalesce(new.organization_id, old.organization_id));
  end if;
  return null;
end
$$;

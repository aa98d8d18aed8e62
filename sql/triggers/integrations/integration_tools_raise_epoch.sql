-- Tools that are off give nothing: that one was found, changed or lost matters where it is or was enabled.
create or replace function app.integration_tools_raise_epoch()
  returns trigger
  language plpgsql
as $$
begin
  if (coalesce(new.enabled, false) or coalesce(old.enabled, false))
     and (new.enabled, new.effect, new.risk, new.required_scopes, new.input_schema)
       is distinct from (old.enabled, old.effect, old.risk, old.required_scopes, old.input_schema) then
    perform app.authorization_epoch_raise(coalesce(new.organization_id, old.organization_id));
  end if;
  return null;
end
$$;

-- An integration by UUID or key, without a lock: for what only reads, and for what is checked again when it is used.
-- Codes: 404 organization_not_found | integration_not_found.
create or replace function app.integration_find(p_organization_id uuid, p_integration_ref text)
  returns app.integrations
  language plpgsql
as $$
declare
  i app.integrations;
begin
  if not exists (select 1 from app.organizations where id = p_organization_id and deleted_at is null) then
    perform app.fail(404, 'organization_not_found', 'Organization not found');
  end if;
  -- A key never has the form of a UUID.
  select * into i from app.integrations
    where organization_id = p_organization_id
      and case
        when p_integration_ref ~* '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$'
          then id = p_integration_ref::uuid
        else key = p_integration_ref end;
  if not found then
    perform app.fail(404, 'integration_not_found', 'Integration not found');
  end if;
  return i;
end
$$;

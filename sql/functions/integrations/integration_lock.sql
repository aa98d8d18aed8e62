-- Locks and returns an integration, by UUID or key. p_epoch: the transition may change what agents may do, so the organization is
-- locked first, which the triggers raise the epoch of.
-- Locks: organization (p_epoch) → integration. Codes: 404 organization_not_found | integration_not_found.
create or replace function app.integration_lock(p_organization_id uuid, p_integration_ref text, p_epoch boolean)
  returns app.integrations
  language plpgsql
as $$
declare
  i app.integrations;
begin
  if p_epoch then
    perform 1 from app.organizations where id = p_organization_id for no key update;
  end if;
  i := app.integration_find(p_organization_id, p_integration_ref);
  select * into i from app.integrations where organization_id = p_organization_id and id = i.id for no key update;
  if not found then
    perform app.fail(404, 'integration_not_found', 'Integration not found');
  end if;
  return i;
end
$$;

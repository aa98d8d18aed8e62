-- Locks an organization whose collecting somebody brings forward, and judges who. p_actor: {kind: owner} | {kind: service} | {kind:
-- capability, tokenHash}: the runs of every enabled profile may. Returns the organization.
-- Locks: organization. Codes: 401 agent_unauthorized, 404 organization_not_found, 409 state_conflict
-- (agents of a suspended organization).
create or replace function app.insight_refresh_require(p_organization_id uuid, p_actor jsonb)
  returns app.organizations
  language plpgsql
as $$
declare
  o app.organizations;
begin
  select * into o from app.organizations where id = p_organization_id and deleted_at is null for no key update;
  if not found then
    perform app.fail(404, 'organization_not_found', 'Organization not found');
  end if;
  if p_actor ->> 'kind' = 'capability' then
    if app.capability_actor(p_organization_id, p_actor ->> 'tokenHash', false) is null then
      perform app.fail(401, 'agent_unauthorized', 'The execution capability is not valid');
    end if;
  elsif coalesce(p_actor ->> 'kind', '') not in ('owner', 'service') then
    raise exception 'unknown actor %', p_actor ->> 'kind';
  end if;
  if o.status = 'suspended' and p_actor ->> 'kind' <> 'owner' then
    perform app.fail(409, 'state_conflict', 'The organization is suspended');
  end if;
  return o;
end
$$;

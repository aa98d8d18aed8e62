-- Checks who asks about integrations as an agent, and that what it knows of its authority is current. p_actor: {kind: service} | {kind:
-- capability, tokenHash}. Returns the profile, without id for the service. Locks: none.
-- Codes: 401 agent_unauthorized, 404 organization_not_found, 409 state_conflict (stale_epoch).
create or replace function app.integration_agent_require(
  p_organization_id uuid, p_actor jsonb, p_authorization_epoch integer)
  returns app.agent_profiles
  language plpgsql
as $$
declare
  v_actor jsonb;
  o app.organizations;
  p app.agent_profiles;
begin
  select * into o from app.organizations where id = p_organization_id and deleted_at is null;
  if not found then
    perform app.fail(404, 'organization_not_found', 'Organization not found');
  end if;
  if p_actor ->> 'kind' = 'capability' then
    v_actor := app.capability_actor(p_organization_id, p_actor ->> 'tokenHash', false);
    if v_actor is null then
      perform app.fail(401, 'agent_unauthorized', 'The execution capability is not valid');
    end if;
    select * into p from app.agent_profiles
      where organization_id = p_organization_id and id = (v_actor ->> 'agentProfileId')::uuid;
  elsif p_actor ->> 'kind' is distinct from 'service' then
    raise exception 'unknown actor %', p_actor ->> 'kind';
  end if;
  if p_authorization_epoch is distinct from o.authorization_epoch then
    perform app.fail(409, 'state_conflict', format('The authorization epoch is %s', o.authorization_epoch),
      app.issue('authorizationEpoch', 'stale_epoch', format('is %s', o.authorization_epoch)));
  end if;
  return p;
end
$$;

-- Checks that the actor may decide about actions: owners alone, never agents or the service. p_actor: {kind: owner, by, role?} | as in
-- actor_require. by: who it is, as the decision keeps it. role viewer: reads only. Returns by.
-- Codes: 401 agent_unauthorized, 403 forbidden, 404 organization_not_found, 409 state_conflict (agents of a suspended
-- organization).
create or replace function app.action_decider_require(p_organization_id uuid, p_actor jsonb)
  returns text
  language plpgsql
as $$
begin
  perform app.actor_require(p_organization_id, p_actor);
  if p_actor ->> 'kind' <> 'owner' or p_actor ->> 'role' is not distinct from 'viewer' then
    perform app.fail(403, 'forbidden', 'Owners decide about actions');
  end if;
  return coalesce(p_actor ->> 'by', 'owner');
end
$$;

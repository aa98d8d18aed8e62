-- Authenticates a request that carries an execution token (docs/interface.md 5.3). Each transition checks again what the token
-- may change. Codes: 401 agent_unauthorized.
create or replace function app.capability_check(p_organization_id uuid, p_token_hash text)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_actor jsonb;
begin
  v_actor := app.capability_actor(p_organization_id, p_token_hash, false);
  if v_actor is null or not exists (
    select 1 from app.organizations where id = p_organization_id and deleted_at is null) then
    perform app.fail(401, 'agent_unauthorized', 'The execution capability is not valid');
  end if;
  return jsonb_build_object('actor', v_actor);
end
$$;

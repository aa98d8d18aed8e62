-- Work dispatch dispatching ⇄ stopped by decision of the owner (docs/interface.md 3.1), as dispatch_settle says; published and
-- running work continues. A repeat changes nothing. Agents can stop; only owners and the service token can resume. While an
-- organization is being onboarded it is held whatever its owner decides, and resuming publishes nothing.
-- Locks: organization → run request of a capability → run requests → dispatch. Returns {organization, published_run_requests}.
-- Codes: 401 agent_unauthorized, 404 organization_not_found, 409 state_conflict.
create or replace function app.work_dispatch_set(p_organization_id uuid, p_stopped boolean, p_actor jsonb)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  o app.organizations;
  v_published integer := 0;
begin
  -- Locked before the capability's request, as everywhere: changing the agent's profile locks them in this order.
  select * into o from app.organizations where id = p_organization_id and deleted_at is null for no key update;
  if not found then
    perform app.fail(404, 'organization_not_found', 'Organization not found');
  end if;
  perform app.actor_require(p_organization_id, p_actor, null);
  if not p_stopped and p_actor ->> 'kind' = 'capability' then
    perform app.fail(401, 'agent_unauthorized', 'Only owners and the service token resume work dispatch');
  end if;
  if p_stopped <> (o.work_dispatch_stopped_at is not null) then
    update app.organizations
      set work_dispatch_stopped_at = case when p_stopped then clock_timestamp() end, updated_at = clock_timestamp()
      where id = o.id returning * into o;
    v_published := app.dispatch_settle(o.id);
  end if;
  return jsonb_build_object('organization', to_jsonb(o), 'published_run_requests', v_published);
end
$$;

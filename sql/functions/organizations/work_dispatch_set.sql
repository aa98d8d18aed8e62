-- Work dispatch dispatching ⇄ stopped (docs/interface.md 3.1). Stopped: queued requests are parked, and nothing more is
-- published; published and running work continues. Resumed: due requests are published, the others when they become due. A
-- repeat changes nothing. Agents can stop; only owners and the service token can resume. Chat turns are exempt.
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
  if p_stopped and o.work_dispatch_stopped_at is null then
    update app.organizations set work_dispatch_stopped_at = clock_timestamp(), updated_at = clock_timestamp()
      where id = o.id returning * into o;
    update app.run_requests set parked = true
      where organization_id = o.id and kind = 'task' and state = 'queued' and not parked;
    update app.dispatch set stopped = true where organization_id = o.id and kind = 'task';
  elsif not p_stopped and o.work_dispatch_stopped_at is not null then
    update app.organizations set work_dispatch_stopped_at = null, updated_at = clock_timestamp()
      where id = o.id returning * into o;
    with moved as (
      update app.run_requests
        set parked = false,
          state = case when due_at <= clock_timestamp() then 'published' else 'queued' end,
          published_at = case when due_at <= clock_timestamp() then clock_timestamp() else published_at end
        where organization_id = o.id and kind = 'task' and state = 'queued'
        returning state)
    select count(*) filter (where state = 'published') into v_published from moved;
    update app.dispatch set stopped = false where organization_id = o.id and kind = 'task';
  end if;
  return jsonb_build_object('organization', to_jsonb(o), 'published_run_requests', v_published);
end
$$;

-- Work dispatch dispatching ⇄ stopped, as the organization now says: stopped while its owner stopped it, and held until it has
-- been onboarded (status onboarding, and an onboarding that is not completed while it is suspended). Stopped: queued requests
-- are parked, and nothing more is published. Dispatching: due requests are published, the others when they become due. Chat
-- turns are exempt. Returns how many were published. The caller holds the organization.
-- Locks: run requests → dispatch.
create or replace function app.dispatch_settle(p_organization_id uuid)
  returns integer
  language plpgsql
as $$
declare
  v_stopped boolean;
  v_published integer := 0;
begin
  select o.work_dispatch_stopped_at is not null or o.status = 'onboarding' or exists (
      select 1 from app.onboardings b where b.organization_id = o.id and b.status <> 'completed')
    into v_stopped
    from app.organizations o where o.id = p_organization_id;
  if v_stopped = (select stopped from app.dispatch where organization_id = p_organization_id and kind = 'task') then
    return 0;
  end if;
  if v_stopped then
    update app.run_requests set parked = true
      where organization_id = p_organization_id and kind = 'task' and state = 'queued' and not parked;
  else
    with moved as (
      update app.run_requests
        set parked = false,
          state = case when due_at <= clock_timestamp() then 'published' else 'queued' end,
          published_at = case when due_at <= clock_timestamp() then clock_timestamp() else published_at end
        where organization_id = p_organization_id and kind = 'task' and state = 'queued'
        returning state)
    select count(*) filter (where state = 'published') into v_published from moved;
  end if;
  update app.dispatch set stopped = v_stopped where organization_id = p_organization_id and kind = 'task';
  return v_published;
end
$$;

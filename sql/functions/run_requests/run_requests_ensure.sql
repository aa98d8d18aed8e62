-- Run request (none) → published, or → queued and parked while work dispatch is stopped. Makes one request for each given task
-- without a live one: for its owner or, in phase verify, for its verifier. All given tasks are ready.
-- Requests follow the order in which the tasks were created; among those of one plan, tasks come before initiatives.
-- The caller has locked the roots. Locks: (roots) → (commit) dispatch.
create or replace function app.run_requests_ensure(p_organization_id uuid, p_task_ids uuid[])
  returns void
  language plpgsql
as $$
begin
  insert into app.run_requests
      (organization_id, kind, task_id, agent_profile_id, mode, state, priority, parked, due_at, published_at)
    select t.organization_id, 'task', t.id,
        case t.phase when 'verify' then app.task_verifier(t.organization_id, t.spec,
            coalesce((t.verification ->> 'executorProfileId')::uuid, t.owner_agent_profile_id), true)
          else t.owner_agent_profile_id end,
        case when t.phase in ('plan', 'verify') then t.phase else 'execute' end,
        case when d.stopped then 'queued' else 'published' end, t.priority, d.stopped, clock_timestamp(),
        case when not d.stopped then clock_timestamp() end
      from app.tasks t
      join app.dispatch d on d.organization_id = t.organization_id and d.kind = 'task'
      where t.organization_id = p_organization_id and t.id = any (p_task_ids)
        and not exists (select 1 from app.run_requests r
          where r.organization_id = p_organization_id and r.task_id = t.id
            and r.state in ('queued', 'published', 'leased', 'started') and r.cancel_requested_at is null)
      order by t.created_at, t.kind desc, t.identifier_number;
end
$$;

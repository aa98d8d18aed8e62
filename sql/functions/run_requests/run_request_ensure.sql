-- A ready task has one live request, for its owner or, to verify it, for its verifier: published, or parked while work dispatch is stopped. Caller holds the root.
create or replace function app.run_request_ensure(p_organization_id uuid, p_task_id uuid)
  returns void
  language plpgsql
as $$
declare
  v_stopped boolean;
begin
  if exists (select 1 from app.run_requests where organization_id = p_organization_id and task_id = p_task_id
             and state in ('queued', 'published', 'leased', 'started') and cancel_requested_at is null) then
    return;
  end if;
  select stopped into v_stopped from app.dispatch where organization_id = p_organization_id and kind = 'task';
  insert into app.run_requests
      (organization_id, kind, task_id, agent_profile_id, mode, state, priority, parked, due_at, published_at)
    select t.organization_id, 'task', t.id,
        case t.phase when 'verify' then app.task_verifier(t.organization_id, t.spec,
            coalesce((t.verification ->> 'executorProfileId')::uuid, t.owner_agent_profile_id), true)
          else t.owner_agent_profile_id end,
        case t.phase when 'plan' then 'plan' when 'verify' then 'verify' else 'execute' end,
        case when v_stopped then 'queued' else 'published' end, t.priority, v_stopped, clock_timestamp(),
        case when not v_stopped then clock_timestamp() end
      from app.tasks t where t.organization_id = p_organization_id and t.id = p_task_id;
end
$$;

-- Task open → failed (docs/interface.md 3.13). If the initiative above can be replanned, it is, and its other children stay as
-- they are. Otherwise its open ancestors fail too, everything open below them is cancelled, and all of them record this failure
-- as their origin, so that a retry reopens exactly those, and a person is notified (task_failure_notify).
-- If the task has already failed, only its ancestors are affected.
-- The caller has locked the roots. Locks: (roots) → run requests → runs → actions → inbox items → (commit) dispatch.
create or replace function app.task_fail(p_organization_id uuid, p_task_id uuid, p_error jsonb)
  returns void
  language plpgsql
as $$
declare
  v_parent app.tasks;
  v_replans boolean;
  v_reason jsonb;
  v_failed uuid[];
  v_open uuid[];
begin
  select p.* into v_parent from app.tasks t
    join app.tasks p on p.organization_id = t.organization_id and p.id = t.parent_id
    where t.organization_id = p_organization_id and t.id = p_task_id;
  -- A plan that is still pending takes this failure into account too.
  v_replans := coalesce(v_parent.phase = 'plan' or v_parent.phase = 'execute'
    and v_parent.replan_count < coalesce((v_parent.spec #>> '{budget,maxReplans}')::integer, 2), false);
  if v_replans then
    v_reason := jsonb_build_object('reason', 'child_failed', 'taskId', p_task_id, 'error', p_error);
    update app.tasks
      set phase = 'plan', replan = coalesce(replan, '{}') || v_reason || case
        when phase = 'execute' then '{"asked": true}'::jsonb
        when status = 'running' then '{"missed": true}'::jsonb
        else '{}' end
      where organization_id = p_organization_id and id = v_parent.id;
  end if;
  with recursive up as (
    select t.id, t.parent_id from app.tasks t where t.organization_id = p_organization_id and t.id = p_task_id
    union all
    select t.id, t.parent_id from app.tasks t join up on t.id = up.parent_id
      where t.organization_id = p_organization_id and not v_replans
  ), failed as (
    update app.tasks t
      set status = 'failed', phase = 'closed', blockers = '[]', active_run_id = null, waiting_until = null,
        waiting_reason = null, waiting_action_ids = null, failure_origin_id = p_task_id,
        error = case when t.id = p_task_id then p_error else jsonb_build_object('code', 'child_failed',
          'message', 'A task below failed', 'retryable', false, 'taskId', p_task_id) end
      from up
      where t.organization_id = p_organization_id and t.id = up.id
        and t.status in ('pending', 'blocked', 'running', 'waiting')
      returning t.id)
  select coalesce(array_agg(id), '{}') into v_failed from failed;
  perform app.task_requests_cancel(p_organization_id, v_failed);
  perform app.actions_cancel_of_tasks(p_organization_id, v_failed);
  with recursive down as (
    select t.id from app.tasks t where t.organization_id = p_organization_id and t.parent_id = any (v_failed)
    union
    select t.id from app.tasks t join down on t.parent_id = down.id where t.organization_id = p_organization_id
  )
  select array_agg(t.id) into v_open from app.tasks t join down on down.id = t.id
    where t.organization_id = p_organization_id and t.status in ('pending', 'blocked', 'running', 'waiting');
  if v_open is not null then
    perform app.tasks_cancel(p_organization_id, v_open, p_task_id);
  end if;
  perform app.tasks_propagate_end(p_organization_id, v_failed);
  if v_replans then
    perform app.task_settle(p_organization_id, v_parent.id);
  else
    perform app.task_failure_notify(p_organization_id, p_task_id, p_error);
  end if;
end
$$;

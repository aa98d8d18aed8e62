-- Tasks open → cancelled. p_origin: the task whose failure causes it; null: a person cancels,
-- p_cancel_origin then being the task that is named. The caller has locked the roots.
-- Locks: (roots) → run requests → runs → actions → inbox items → (commit) dispatch.
create or replace function app.tasks_cancel(p_organization_id uuid, p_task_ids uuid[], p_origin uuid, p_cancel_origin uuid default null)
  returns void
  language plpgsql
as $$
declare
  v_ids uuid[];
begin
  with ended as (
    update app.tasks
      set status = 'cancelled', phase = 'closed', blockers = '[]', active_run_id = null, waiting_until = null,
        waiting_reason = null, waiting_action_ids = null, failure_origin_id = p_origin, cancel_origin_id = p_cancel_origin
      where organization_id = p_organization_id and id = any (p_task_ids)
        and status in ('pending', 'blocked', 'running', 'waiting')
      returning id)
  select coalesce(array_agg(id), '{}') into v_ids from ended;
  perform app.task_requests_cancel(p_organization_id, v_ids);
  perform app.actions_cancel_of_tasks(p_organization_id, v_ids);
  perform app.tasks_propagate_end(p_organization_id, v_ids);
end
$$;

-- Run starting | running → succeeded, and its plan is applied. Initiative running in phase plan → blocked by its children in
-- phase execute, or closed if the plan leaves nothing open below it.
-- A child that failed after the run had started was unknown to the plan: its failure takes effect now, unless it was retried
-- since.
-- Called by run_complete_staged, which has checked the lease and the plan.
-- Locks: (roots, run request) → … as plan_apply. Codes: those of the functions that plan_apply calls.
create or replace function app.run_complete_plan(
  r app.run_requests, t app.tasks, o app.task_outcomes, p_body_hash text, p_result jsonb, p_artifacts jsonb, p_report jsonb)
  returns void
  language plpgsql
as $$
declare
  v_tasks jsonb;
begin
  v_tasks := app.plan_apply(r.organization_id, t, o.run_id, o.outcome -> 'operations');
  perform app.run_finish(r, 'succeeded', 'complete', p_body_hash,
    jsonb_build_object('kind', 'task_result', 'result', jsonb_build_object('kind', 'planned',
      'summary', coalesce(p_result ->> 'summary', ''), 'artifacts', p_artifacts, 'tasks', v_tasks)), null, p_report);
  update app.tasks
    set status = 'blocked', blockers = '[{"kind": "children"}]', phase = 'execute', active_run_id = null, replan = null
    where organization_id = r.organization_id and id = t.id;
  if t.replan ? 'missed' and exists (select 1 from app.tasks c where c.organization_id = r.organization_id
      and c.id = (t.replan ->> 'taskId')::uuid and c.status = 'failed') then
    perform app.task_fail(r.organization_id, (t.replan ->> 'taskId')::uuid, t.replan -> 'error');
  end if;
  perform app.task_settle(r.organization_id, t.id);
end
$$;

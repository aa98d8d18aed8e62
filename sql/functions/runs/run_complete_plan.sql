-- Run → succeeded; the initiative is planned: its plan is applied, and it waits for its children (running/plan →
-- blocked/execute), or is over where the plan leaves nothing open. A child that failed while the plan was made was not
-- seen by it: it counts now.
create or replace function app.run_complete_plan(
  r app.run_requests, t app.tasks, o app.task_outcomes, p_body_hash text, p_result jsonb, p_artifacts jsonb, p_report jsonb)
  returns void
  language plpgsql
as $$
declare
  v_made jsonb;
begin
  v_made := app.plan_apply(r.organization_id, t, o.run_id, o.outcome -> 'operations');
  perform app.run_finish_record(r.organization_id, o.run_id, 'succeeded', 'complete', p_body_hash,
    jsonb_build_object('kind', 'task_result', 'result', jsonb_build_object('kind', 'planned',
      'summary', coalesce(p_result ->> 'summary', ''), 'artifacts', p_artifacts, 'tasks', v_made)), null, p_report);
  perform app.run_request_finish(r.organization_id, r.id);
  update app.tasks
    set status = 'blocked', blockers = '[{"kind": "children"}]', phase = 'execute', active_run_id = null, replan = null
    where organization_id = r.organization_id and id = t.id;
  if t.replan ? 'missed' then
    perform app.task_fail(r.organization_id, (t.replan ->> 'taskId')::uuid, t.replan -> 'error');
  end if;
  perform app.task_settle(r.organization_id, t.id);
end
$$;

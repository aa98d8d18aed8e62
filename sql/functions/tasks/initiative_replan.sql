-- Open initiative → phase plan, to be planned again. task_settle takes one of its remaining replans, or asks a person for more.
-- p_reason: {reason: none_completed | verdict_failed}. The caller has locked the roots. Locks: (roots) → … as task_settle.
create or replace function app.initiative_replan(p_organization_id uuid, p_task_id uuid, p_reason jsonb)
  returns void
  language plpgsql
as $$
begin
  update app.tasks
    set phase = 'plan', replan = p_reason || '{"asked": true}', active_run_id = null,
      status = case status when 'running' then 'pending' else status end
    where organization_id = p_organization_id and id = p_task_id;
  perform app.task_settle(p_organization_id, p_task_id);
end
$$;

-- An open initiative is planned again. One of its replans is taken for it where there is one left, else a person is asked
-- for more (task_settle does both). p_reason: {reason: none_completed | verdict_failed}. The caller holds the roots.
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

-- Run starting | running → succeeded; task running → waiting until the time that the result names, when tasks_wake settles it, or
-- blocked by the actions that it names, until the last of them is over. Then it runs again.
-- Called by run_complete, which has locked roots and request and checked the lease. Codes: 400 validation_failed (the lease stays
-- valid).
create or replace function app.run_complete_waiting(r app.run_requests, p_body_hash text, p_result jsonb, p_report jsonb)
  returns jsonb
  language plpgsql
as $$
begin
  perform app.action_wait_check(r.organization_id, r.task_id, r.mode, 'output.result.actionIds', p_result);
  perform app.run_finish(r, 'succeeded', 'complete', p_body_hash,
    jsonb_build_object('kind', 'task_result', 'result', p_result), null, p_report);
  update app.tasks
    set status = case when p_result ? 'actionIds' then 'pending' else 'waiting' end, active_run_id = null,
      waiting_until = (p_result ->> 'until')::timestamptz,
      waiting_reason = case when not p_result ? 'actionIds' then p_result ->> 'reason' end,
      waiting_action_ids = (select jsonb_agg(distinct w) from jsonb_array_elements(p_result -> 'actionIds') w)
    where organization_id = r.organization_id and id = r.task_id;
  perform app.task_settle(r.organization_id, r.task_id);
  return '{"status": "succeeded"}';
end
$$;

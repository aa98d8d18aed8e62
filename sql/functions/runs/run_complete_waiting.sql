-- Run starting | running → succeeded; task running → waiting until the time that the result names. Then tasks_wake settles it,
-- and it runs again.
-- Called by run_complete, which has locked roots and request and checked the lease.
create or replace function app.run_complete_waiting(r app.run_requests, p_body_hash text, p_result jsonb, p_report jsonb)
  returns jsonb
  language plpgsql
as $$
begin
  perform app.run_finish(r, 'succeeded', 'complete', p_body_hash,
    jsonb_build_object('kind', 'task_result', 'result', p_result), null, p_report);
  update app.tasks
    set status = 'waiting', active_run_id = null, waiting_until = (p_result ->> 'until')::timestamptz,
      waiting_reason = p_result ->> 'reason'
    where organization_id = r.organization_id and id = r.task_id;
  perform app.task_settle(r.organization_id, r.task_id);
  return '{"status": "succeeded"}';
end
$$;

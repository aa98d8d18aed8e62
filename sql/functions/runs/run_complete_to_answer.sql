-- Run starting | running → succeeded with a result that passed all checks, while a blocking question that the run asked is
-- still open. Task running → blocked by that question; it runs again once a person has answered.
-- Called by run_complete, which has locked roots and request and checked the lease.
create or replace function app.run_complete_to_answer(r app.run_requests, p_body_hash text, p_result jsonb, p_report jsonb)
  returns jsonb
  language plpgsql
as $$
begin
  perform app.run_finish(r, 'succeeded', 'complete', p_body_hash,
    jsonb_build_object('kind', 'task_result', 'result', p_result), null, p_report);
  update app.tasks set status = 'pending', active_run_id = null, contract = null
    where organization_id = r.organization_id and id = r.task_id;
  perform app.task_settle(r.organization_id, r.task_id);
  return '{"status": "succeeded"}';
end
$$;

-- Run → succeeded with a result that passes all checks, but the run asked a person a blocking question that is still open: task
-- running → blocked by it, and it runs again with the answer. Called by run_complete with roots, request and lease checked.
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

-- Run starting | running → succeeded; task running → blocked by the question that the result asks. The task runs again once a
-- person has answered.
-- Called by run_complete, which has locked roots and request and checked the lease.
create or replace function app.run_complete_needs_input(
  r app.run_requests, t app.tasks, p_body_hash text, p_result jsonb, p_report jsonb)
  returns jsonb
  language plpgsql
as $$
begin
  perform app.run_finish(r, 'succeeded', 'complete', p_body_hash,
    jsonb_build_object('kind', 'task_result', 'result', p_result), null, p_report);
  insert into app.human_inbox_items (organization_id, kind, purpose, blocking, title, body, options, task_id, run_id)
    values (r.organization_id, 'question', 'needs_input', true, left('Question about: ' || t.title, 500),
      p_result ->> 'question', coalesce(p_result -> 'options', '[]'), t.id, r.run_id);
  update app.tasks set status = 'pending', active_run_id = null where organization_id = r.organization_id and id = t.id;
  perform app.task_settle(r.organization_id, t.id);
  return '{"status": "succeeded"}';
end
$$;

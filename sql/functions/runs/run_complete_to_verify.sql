-- Run starting | running → succeeded with a result that passed all checks, of a task that requires a verdict. Task running in
-- phase execute → pending | blocked in phase verify. The count of failed results starts again.
-- Called by run_complete, which has locked roots and request and checked the lease.
-- Locks: (roots, run request) → organization (shared, without waiting) → run.
create or replace function app.run_complete_to_verify(r app.run_requests, p_body_hash text, p_result jsonb, p_report jsonb)
  returns jsonb
  language plpgsql
as $$
begin
  perform app.profiles_lock_shared(r.organization_id);
  perform app.run_finish(r, 'succeeded', 'complete', p_body_hash,
    jsonb_build_object('kind', 'task_result', 'result', p_result), null, p_report);
  update app.tasks
    set status = 'pending', phase = 'verify', active_run_id = null, completion_revision = completion_revision + 1,
      contract = case when contract ? 'verdicts' then contract || '{"failures": 0}' end,
      verification = jsonb_build_object('runId', r.run_id, 'executorProfileId', r.agent_profile_id, 'result', p_result)
    where organization_id = r.organization_id and id = r.task_id;
  perform app.task_settle(r.organization_id, r.task_id);
  return '{"status": "succeeded"}';
end
$$;

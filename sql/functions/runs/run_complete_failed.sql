-- Run starting | running → failed with acceptance_failed, because a check of its result failed. Task running → pending, to be
-- repaired by another run that gets the failed checks; after the second failure in a row → blocked by a question to a person
-- (task_repair_ask).
-- Called by run_complete, which has locked roots and request and checked the lease.
create or replace function app.run_complete_failed(
  r app.run_requests, t app.tasks, p_body_hash text, p_result jsonb, p_report jsonb)
  returns jsonb
  language plpgsql
as $$
declare
  v_failures constant integer := coalesce((t.contract ->> 'failures')::integer, 0) + 1;
  v_failed constant jsonb := jsonb_path_query_array(p_result, '$.completion.checks[*] ? (@.status == "failed")');
begin
  perform app.run_finish(r, 'failed', 'complete', p_body_hash,
    jsonb_build_object('kind', 'task_result', 'result', p_result), jsonb_build_object('code', 'acceptance_failed',
      'message', 'The output does not meet the acceptance criteria of the task', 'retryable', true), p_report);
  update app.tasks
    set status = 'pending', active_run_id = null, completion_revision = completion_revision + 1,
      contract = coalesce(t.contract, '{}') || jsonb_build_object('failures', v_failures, 'runId', r.run_id, 'checks', v_failed)
    where organization_id = r.organization_id and id = t.id;
  if v_failures > 1 then
    perform app.task_repair_ask(t, r.run_id, (
      select string_agg(c.item ->> 'summary', E'\n' order by c.place)
        from jsonb_array_elements(v_failed) with ordinality c(item, place)));
  end if;
  perform app.task_settle(r.organization_id, t.id);
  return '{"status": "failed"}';
end
$$;

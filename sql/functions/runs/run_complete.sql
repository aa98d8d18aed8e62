-- Run starting | running → succeeded | failed with its result. What happens to the task or the chat turn depends on the result:
-- see the functions called below (docs/interface.md 4.13.2).
-- If the task has acceptance criteria to evaluate, p_checks holds the checks of the result, and p_evaluation_digest identifies
-- the criteria and bytes that they were made of. If the digest does not match the current ones (the first call has neither),
-- nothing changes and the call returns {evaluation} (run_evaluation_request), with which to call again.
-- p_result: {kind: completed | waiting | needs_input, …} of a task, {kind: chat_message, …} of a chat turn.
-- p_report: {usage, receipts, harness, workspaceUri, logState}. After a cancel nothing else is stored, and the status is
-- cancelled.
-- A repeat returns the status of the first call. Returns {status, and for a chat turn chatId, messageId, revision} or
-- {evaluation}.
-- Locks: roots → run request → run → … as the functions called → (commit) dispatch.
-- Codes: 400 validation_failed (an artifact that was never stored, a result that differs from the staged one, the output of a
-- chat turn for a task; the lease stays valid), 409 run_lease_expired with lease_lost | differs.
create or replace function app.run_complete(
  p_organization_id uuid, p_run_id uuid, p_lease_token text, p_body_hash text, p_result jsonb, p_report jsonb,
  p_checks jsonb, p_evaluation_digest text, p_max_attempts integer default 3, p_backoff_seconds integer default 10,
  p_backoff_max_seconds integer default 300)
  returns jsonb
  language plpgsql security definer
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  t app.tasks;
  r app.run_requests;
  v_ended jsonb;
  v_staged jsonb;
  v_artifacts jsonb := '[]';
  v_outputs jsonb := '[]';
  v_evaluation jsonb;
  v_passed boolean;
  v_result jsonb;
begin
  t := app.run_roots_lock(p_organization_id, p_run_id);
  r := app.run_request_lock(p_organization_id, p_run_id);
  v_ended := app.run_finish_precheck(r, p_run_id, p_lease_token, 'complete', p_body_hash, p_report);
  if v_ended is not null then
    return v_ended;
  end if;
  if r.kind = 'chat' or p_result ->> 'kind' = 'chat_message' then
    return app.chat_turn_complete(r, p_body_hash, p_result, p_report);
  end if;
  if t.id is distinct from r.task_id then
    select * into t from app.tasks where organization_id = p_organization_id and id = r.task_id;
  end if;

  if r.mode <> 'execute' or r.staged_run_id = p_run_id then
    v_staged := app.run_complete_staged(r, t, p_body_hash, p_result, p_report, p_max_attempts, p_backoff_seconds,
      p_backoff_max_seconds);
    if v_staged ? 'status' then
      return v_staged;
    end if;
    p_result := v_staged -> 'result';
  end if;
  if p_result ->> 'kind' = 'waiting' then
    return app.run_complete_waiting(r, p_body_hash, p_result, p_report);
  elsif p_result ->> 'kind' = 'needs_input' then
    return app.run_complete_needs_input(r, t, p_body_hash, p_result, p_report);
  end if;

  if jsonb_array_length(p_result -> 'artifacts') > 0 then
    select a.artifacts, a.outputs into v_artifacts, v_outputs
      from app.run_artifacts(p_organization_id, p_run_id, p_result -> 'artifacts') a;
  end if;
  if t.spec -> 'acceptanceCriteria' @> '[{"kind": "output_file"}]' then
    v_evaluation := app.run_evaluation_request(t.spec -> 'acceptanceCriteria', v_outputs);
    if p_checks is null or p_evaluation_digest is distinct from v_evaluation ->> 'digest' then
      return jsonb_build_object('evaluation', v_evaluation);
    end if;
  end if;
  v_passed := not coalesce(p_checks, '[]') @> '[{"status": "failed"}]';
  v_result := jsonb_build_object('kind', 'completed', 'summary', coalesce(p_result ->> 'summary', ''),
    'artifacts', v_artifacts, 'completion', app.task_completion(t, jsonb_build_array(p_run_id),
      case when v_passed then 'passed' else 'failed' end, coalesce(p_checks, '[]')));
  if not v_passed then
    return app.run_complete_failed(r, t, p_body_hash, v_result, p_report);
  elsif (v_staged -> 'asks')::boolean then
    return app.run_complete_to_answer(r, p_body_hash, v_result, p_report);
  elsif t.spec ->> 'verification' = 'agent' then
    return app.run_complete_to_verify(r, p_body_hash, v_result, p_report);
  end if;
  -- The most frequent end, so it is inlined: each call of a function costs time.
  perform app.run_finish(r, 'succeeded', 'complete', p_body_hash,
    jsonb_build_object('kind', 'task_result', 'result', v_result), null, p_report);
  update app.tasks
    set status = 'completed', phase = 'closed', active_run_id = null, completed_at = clock_timestamp(),
      completion_revision = completion_revision + 1, contract = null, result = v_result
    where organization_id = p_organization_id and id = t.id;
  perform app.tasks_propagate_end(p_organization_id, array[t.id]);
  return '{"status": "succeeded"}';
end
$$;

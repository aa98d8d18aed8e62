-- The part of run_complete that only some runs need: those that plan or verify, and those that left an outcome or a
-- question. Request and run are locked and may be finished. Answers {status} when that is done here, else
-- {result, asks}: the result that the run ends with, and whether a blocking question of it is open.
-- A plan or verify run without its outcome has failed, retryable, with outcome_missing (contract 4.13).
-- Codes: 400 validation_failed (the worker's result differs from the staged one; the lease stays).
create or replace function app.run_complete_staged(
  r app.run_requests, t app.tasks, p_run_id uuid, p_body_hash text, p_result jsonb, p_report jsonb,
  p_max_attempts integer, p_backoff_seconds integer, p_backoff_max_seconds integer)
  returns jsonb
  language plpgsql
as $$
declare
  o app.task_outcomes;
  v_error jsonb;
  v_found record;
  v_artifacts jsonb := '[]';
begin
  select * into o from app.task_outcomes where organization_id = r.organization_id and run_id = p_run_id;
  if o.kind = 'execution' and o.outcome -> 'result' <> p_result
     or o.kind <> 'execution' and p_result ->> 'kind' <> 'completed' and o.outcome <> p_result then
    perform app.fail(400, 'validation_failed', 'The result is not the one that was handed in for this run',
      app.issue('output.result', 'differs_from_staged', 'the staged outcome says otherwise'));
  end if;
  if o.kind in ('waiting', 'needs_input') then
    update app.task_outcomes set applied_at = clock_timestamp()
      where organization_id = r.organization_id and run_id = p_run_id;
    return jsonb_build_object('result', o.outcome);
  end if;
  if r.mode = 'execute' or r.mode = 'plan' and o.run_id is null and p_result ->> 'kind' <> 'completed' then
    return jsonb_build_object('result', p_result, 'asks', p_result ->> 'kind' = 'completed' and exists (
      select 1 from app.human_inbox_items i where i.organization_id = r.organization_id and i.task_id = t.id
        and i.status = 'open' and i.blocking and i.purpose = 'agent'));
  end if;

  if o.run_id is null then
    v_error := jsonb_build_object('code', 'outcome_missing', 'retryable', true,
      'message', format('A run of mode %s has to hand in its outcome before it completes', r.mode));
  elsif o.kind = 'plan' then
    v_error := app.plan_issues(r.organization_id, t, o.outcome -> 'operations');
    if v_error is not null then
      v_error := jsonb_build_object('code', 'plan_rejected', 'retryable', true, 'message',
        left('The plan does not fit any more: ' || (select string_agg(format('%s: %s', i ->> 'path', i ->> 'message'), '; ')
          from jsonb_array_elements(v_error -> 'issues') i), 2000));
    end if;
  end if;
  if v_error is null and jsonb_array_length(p_result -> 'artifacts') > 0 then
    select a.artifacts, a.missing into v_found from app.run_artifacts(r.organization_id, p_run_id, p_result -> 'artifacts') a;
    if v_found.missing <> '[]' then
      perform app.fail(400, 'validation_failed', 'An artifact is not what was stored', v_found.missing);
    end if;
    v_artifacts := v_found.artifacts;
  end if;
  if v_error is null and o.kind = 'plan' then
    begin
      perform app.run_complete_plan(r, t, o, p_body_hash, p_result, v_artifacts, p_report);
    exception when sqlstate 'RN400' or sqlstate 'RN404' or sqlstate 'RN409' then
      -- What plan_issues did not see: refused to the worker, the run could never end.
      v_error := jsonb_build_object('code', 'plan_rejected', 'retryable', true,
        'message', left('The plan cannot be applied: ' || sqlerrm, 2000));
    end;
  end if;
  if v_error is not null then
    perform app.run_finish_record(r.organization_id, p_run_id, 'failed', 'complete', p_body_hash, null, v_error, p_report);
    perform app.run_request_after_failure(r.organization_id, r, v_error, p_max_attempts, p_backoff_seconds,
      p_backoff_max_seconds);
    return '{"status": "failed"}';
  end if;

  update app.task_outcomes set applied_at = clock_timestamp()
    where organization_id = r.organization_id and run_id = p_run_id;
  if o.kind = 'verification' then
    perform app.run_complete_verdict(r, t, o, p_body_hash, v_artifacts, p_report);
  end if;
  return '{"status": "succeeded"}';
end
$$;

-- The part of run_complete for runs in mode plan or verify, and for runs that staged an outcome or asked a person a question.
-- Returns {status} if the run ends here: its plan or verdict is applied, or it fails, retryable, with outcome_missing |
-- plan_rejected. Otherwise returns {result, asks}: the result with which run_complete continues, and whether a blocking
-- question of the run is open.
-- Called by run_complete, which has locked roots and request and checked the lease.
-- Codes: 400 validation_failed with differs_from_staged | not_stored | differs_from_stored (the lease stays valid).
create or replace function app.run_complete_staged(
  r app.run_requests, t app.tasks, p_body_hash text, p_result jsonb, p_report jsonb, p_max_attempts integer,
  p_backoff_seconds integer, p_backoff_max_seconds integer)
  returns jsonb
  language plpgsql
as $$
declare
  o app.task_outcomes;
  v_error jsonb;
  v_artifacts jsonb := '[]';
begin
  select * into o from app.task_outcomes where organization_id = r.organization_id and run_id = r.run_id;
  if o.kind = 'execution' and o.outcome -> 'result' <> p_result
     or o.kind <> 'execution' and p_result ->> 'kind' <> 'completed' and o.outcome <> p_result then
    perform app.fail(400, 'validation_failed', 'The result is not the one that was handed in for this run',
      app.issue('output.result', 'differs_from_staged', 'the staged outcome says otherwise'));
  end if;
  if o.kind in ('waiting', 'needs_input') then
    update app.task_outcomes set applied_at = clock_timestamp()
      where organization_id = r.organization_id and run_id = r.run_id;
    return jsonb_build_object('result', o.outcome);
  end if;
  if r.mode = 'execute' or r.mode = 'plan' and o.run_id is null and p_result ->> 'kind' <> 'completed' then
    return jsonb_build_object('result', p_result, 'asks', p_result ->> 'kind' = 'completed' and exists (
      select 1 from app.human_inbox_items i where i.organization_id = r.organization_id and i.task_id = t.id
        and i.status = 'open' and i.blocking and i.purpose = 'agent'));
  end if;

  -- A plan or a verdict is required here; it may be missing.
  v_error := app.run_outcome_error(r, t, o);
  if v_error is null and jsonb_array_length(p_result -> 'artifacts') > 0 then
    select a.artifacts into v_artifacts from app.run_artifacts(r.organization_id, r.run_id, p_result -> 'artifacts') a;
  end if;
  if v_error is null and o.kind = 'plan' then
    begin
      perform app.run_complete_plan(r, t, o, p_body_hash, p_result, v_artifacts, p_report);
    exception when sqlstate 'RN400' or sqlstate 'RN404' or sqlstate 'RN409' then
      -- plan_issues missed this. Refusing the call would leave a run that can never end.
      v_error := jsonb_build_object('code', 'plan_rejected', 'retryable', true,
        'message', left('The plan cannot be applied: ' || sqlerrm, 2000));
    end;
  end if;
  if v_error is not null then
    perform app.run_finish(r, 'failed', 'complete', p_body_hash, null, v_error, p_report, null);
    perform app.run_request_retry_or_fail(r, v_error, p_max_attempts, p_backoff_seconds, p_backoff_max_seconds);
    return '{"status": "failed"}';
  end if;

  update app.task_outcomes set applied_at = clock_timestamp()
    where organization_id = r.organization_id and run_id = r.run_id;
  if o.kind = 'verification' then
    perform app.run_complete_verdict(r, t, o, p_body_hash, v_artifacts, p_report);
  end if;
  return '{"status": "succeeded"}';
end
$$;

-- Run starting | running → succeeded, whatever its verdict on the result is.
-- Verdict passed: task running in phase verify → completed with the verified result. Verdict failed: task → pending in phase
-- execute (an initiative: in phase plan, by initiative_replan), with the verdict in its contract; after the second failed
-- verdict → blocked by a question to a person (task_repair_ask).
-- Called by run_complete_staged, which has checked the lease.
create or replace function app.run_complete_verdict(
  r app.run_requests, t app.tasks, o app.task_outcomes, p_body_hash text, p_artifacts jsonb, p_report jsonb)
  returns void
  language plpgsql
as $$
declare
  v_verdicts constant integer := coalesce((t.contract ->> 'verdicts')::integer, 0) + 1;
  v_run_id constant uuid := coalesce((t.verification ->> 'runId')::uuid, o.run_id);
  v_result constant jsonb := t.verification -> 'result';
  -- The verdict is about the whole task, so its index follows that of the last criterion.
  v_check constant jsonb := jsonb_build_object('criterionIndex', jsonb_array_length(t.spec -> 'acceptanceCriteria'),
    'evaluator', 'agent', 'status', o.outcome ->> 'verdict', 'summary', o.outcome ->> 'summary',
    'evidence', o.outcome -> 'evidence');
begin
  perform app.run_finish(r, 'succeeded', 'complete', p_body_hash,
    jsonb_build_object('kind', 'task_result', 'result', jsonb_build_object('kind', 'verification',
      'verdict', o.outcome ->> 'verdict', 'summary', o.outcome ->> 'summary', 'evidence', o.outcome -> 'evidence',
      'artifacts', p_artifacts)), null, p_report);
  if o.outcome ->> 'verdict' = 'passed' then
    update app.tasks
      set status = 'completed', phase = 'closed', active_run_id = null, completed_at = clock_timestamp(),
        completion_revision = completion_revision + 1, contract = null, replan = null,
        result = v_result || jsonb_build_object('completion', app.task_completion(t,
          coalesce(v_result #> '{completion,runIds}', '[]') || jsonb_build_array(o.run_id), 'passed',
          coalesce(v_result #> '{completion,checks}', '[]') || v_check))
      where organization_id = r.organization_id and id = t.id;
    perform app.tasks_propagate_end(r.organization_id, array[t.id]);
    return;
  end if;
  update app.tasks
    set status = 'pending', phase = case kind when 'initiative' then 'plan' else 'execute' end, active_run_id = null,
      completion_revision = completion_revision + 1,
      contract = jsonb_build_object('failures', coalesce((t.contract ->> 'failures')::integer, 0), 'verdicts', v_verdicts,
        'runId', v_run_id, 'checks', jsonb_build_array(v_check))
    where organization_id = r.organization_id and id = t.id;
  if v_verdicts > 1 then
    perform app.task_repair_ask(t, v_run_id, o.outcome ->> 'summary');
  end if;
  if t.kind = 'initiative' then
    perform app.initiative_replan(r.organization_id, t.id, '{"reason": "verdict_failed"}');
  else
    perform app.task_settle(r.organization_id, t.id);
  end if;
end
$$;

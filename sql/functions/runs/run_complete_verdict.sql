-- Run → succeeded, whatever its verdict. Passed: the task is completed with the result that was judged (running/verify →
-- completed). Failed: back to execute, an initiative to another plan, with the verdict in its contract; the second time a
-- person is asked (decisions 4).
create or replace function app.run_complete_verdict(
  r app.run_requests, t app.tasks, o app.task_outcomes, p_body_hash text, p_artifacts jsonb, p_report jsonb)
  returns void
  language plpgsql
as $$
declare
  v_passed boolean := o.outcome ->> 'verdict' = 'passed';
  v_verdicts integer := coalesce((t.contract ->> 'verdicts')::integer, 0) + 1;
  v_run_id text := coalesce(t.verification ->> 'runId', o.run_id::text);
  v_check jsonb;
  v_result jsonb := t.verification -> 'result';
begin
  -- About the task as a whole: its index is the one after the last criterion.
  v_check := jsonb_build_object('criterionIndex', jsonb_array_length(t.spec -> 'acceptanceCriteria'), 'evaluator', 'agent',
    'status', o.outcome ->> 'verdict', 'summary', o.outcome ->> 'summary', 'evidence', o.outcome -> 'evidence');
  perform app.run_finish_record(r.organization_id, o.run_id, 'succeeded', 'complete', p_body_hash,
    jsonb_build_object('kind', 'task_result', 'result', jsonb_build_object('kind', 'verification',
      'verdict', o.outcome ->> 'verdict', 'summary', o.outcome ->> 'summary', 'evidence', o.outcome -> 'evidence',
      'artifacts', p_artifacts)), null, p_report);
  perform app.run_request_finish(r.organization_id, r.id);
  if v_passed then
    v_result := v_result || jsonb_build_object('completion', jsonb_build_object(
      'version', 1, 'taskVersion', t.version,
      'taskGraphRevision', (select graph_revision from app.tasks
                              where organization_id = r.organization_id and id = t.root_task_id),
      'completionRevision', t.completion_revision + 1,
      'runIds', coalesce(v_result #> '{completion,runIds}', '[]') || jsonb_build_array(o.run_id),
      'disposition', 'passed', 'checks', coalesce(v_result #> '{completion,checks}', '[]') || v_check));
    update app.tasks
      set status = 'completed', phase = 'closed', active_run_id = null, completed_at = clock_timestamp(),
        completion_revision = completion_revision + 1, contract = null, replan = null, result = v_result
      where organization_id = r.organization_id and id = t.id;
    perform app.task_ended(r.organization_id, array[t.id]);
    return;
  end if;
  update app.tasks
    set status = 'pending', phase = case kind when 'initiative' then 'plan' else 'execute' end, active_run_id = null,
      completion_revision = completion_revision + 1,
      contract = jsonb_build_object('failures', coalesce((t.contract ->> 'failures')::integer, 0), 'verdicts', v_verdicts,
        'runId', v_run_id, 'checks', jsonb_build_array(v_check))
    where organization_id = r.organization_id and id = t.id;
  if v_verdicts > 1 then
    insert into app.human_inbox_items (organization_id, kind, purpose, blocking, title, body, options, task_id, run_id)
      values (r.organization_id, 'question', 'repair', true, left('The result was refused twice: ' || t.title, 500),
        o.outcome ->> 'summary', '["try_again", "accept", "cancel"]', t.id, v_run_id::uuid)
      on conflict (organization_id, task_id, purpose)
        where status = 'open' and purpose in ('repair', 'budget', 'prerequisite') do nothing;
  end if;
  if t.kind = 'initiative' then
    perform app.initiative_replan(r.organization_id, t.id, '{"reason": "verdict_failed"}');
  else
    perform app.task_settle(r.organization_id, t.id);
  end if;
end
$$;

-- Run starting | running → succeeded | failed (acceptance_failed); the task follows (contract 4.13, decisions 4).
-- result.kind completed: closed when all checks pass; else once more pending with the failures, then a question (repair).
-- waiting: the task waits until a time. needs_input: the task is blocked by a question.
-- A task that asks for an agent's verdict is not closed: it is pending in phase verify. Plan and verify runs, staged outcomes
-- and open questions of the run: see run_complete_staged.
-- p_checks null: not evaluated. When the task has criteria to evaluate, nothing changes and the answer is
-- {evaluate: {runId, criteria, outputs, artifacts}, evaluationDigest}: the caller evaluates the stored bytes and calls again with the
-- checks and `evaluationDigest`, which stands for exactly that task spec and those bytes; if they changed meanwhile, it is asked again.
-- p_report: {usage, receipts, harness, workspaceUri, logState}. After a cancel: report only, {status: cancelled}.
-- Locks: roots → run request → run → (commit) dispatch.
-- A chat turn's p_result is its whole output: see chat_turn_complete.
-- Codes: 400 validation_failed (an artifact that was never stored; the lease stays), 409 run_lease_expired.
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
  r app.run_requests;
  t app.tasks;
  v_answer jsonb;
  v_staged jsonb;
  v_artifacts jsonb := '[]';
  v_missing jsonb := '[]';
  v_outputs jsonb := '[]';
  v_evaluation_digest text;
  v_passed boolean;
  v_result jsonb;
  v_error jsonb;
  v_graph_revision integer;
begin
  -- From most hierarchies no edge leads out: then the root is all there is to lock (task_roots_lock), and for most tasks
  -- it is the task itself.
  select root.* into t from app.tasks root
    where root.organization_id = p_organization_id
      and root.id = (select k.root_task_id from app.runs u
        join app.tasks k on k.organization_id = u.organization_id and k.id = u.task_id
        where u.organization_id = p_organization_id and u.id = p_run_id and u.mode <> 'plan')
      and not exists (select 1 from app.task_dependencies d
        where d.organization_id = p_organization_id and d.depends_on_root_task_id = root.id
          and d.root_task_id <> d.depends_on_root_task_id)
    for no key update;
  if not found then
    perform app.task_roots_lock(p_organization_id, array(
      select unnest(case mode when 'plan' then app.run_task_ids(organization_id, id, task_id) else array[task_id] end)
        from app.runs where organization_id = p_organization_id and id = p_run_id and task_id is not null), true);
  elsif exists (select 1 from app.task_dependencies d
      where d.organization_id = p_organization_id and d.depends_on_root_task_id = t.id
        and d.root_task_id <> d.depends_on_root_task_id) then
    raise exception using errcode = '40001', message = 'the hierarchies to lock changed meanwhile';
  end if;
  r := app.run_request_of(p_organization_id, p_run_id);
  v_answer := app.run_finish_precheck(r, p_run_id, p_lease_token, 'complete', p_body_hash, p_report);
  if v_answer is not null then
    return v_answer;
  end if;
  if r.kind = 'chat' or p_result ->> 'kind' = 'chat_message' then
    return app.chat_turn_complete(r, p_run_id, p_body_hash, p_result, p_report);
  end if;
  v_graph_revision := t.graph_revision;
  if t.id is distinct from r.task_id then
    select * into t from app.tasks where organization_id = p_organization_id and id = r.task_id;
    select graph_revision into v_graph_revision from app.tasks
      where organization_id = p_organization_id and id = t.root_task_id;
  end if;

  if r.mode <> 'execute' or r.staged_run_id = p_run_id then
    v_staged := app.run_complete_staged(r, t, p_run_id, p_body_hash, p_result, p_report, p_max_attempts,
      p_backoff_seconds, p_backoff_max_seconds);
    if v_staged ? 'status' then
      return v_staged;
    end if;
    p_result := v_staged -> 'result';
  end if;
  if p_result ->> 'kind' = 'waiting' then
    perform app.run_finish_record(p_organization_id, p_run_id, 'succeeded', 'complete', p_body_hash,
      jsonb_build_object('kind', 'task_result', 'result', p_result), null, p_report);
    perform app.run_request_finish(p_organization_id, r.id);
    update app.tasks
      set status = 'waiting', active_run_id = null, waiting_until = (p_result ->> 'until')::timestamptz,
        waiting_reason = p_result ->> 'reason'
      where organization_id = p_organization_id and id = t.id;
    perform app.task_settle(p_organization_id, t.id);
    return '{"status": "succeeded"}';
  end if;
  if p_result ->> 'kind' = 'needs_input' then
    perform app.run_finish_record(p_organization_id, p_run_id, 'succeeded', 'complete', p_body_hash,
      jsonb_build_object('kind', 'task_result', 'result', p_result), null, p_report);
    perform app.run_request_finish(p_organization_id, r.id);
    insert into app.human_inbox_items (organization_id, kind, purpose, blocking, title, body, options, task_id, run_id)
      values (p_organization_id, 'question', 'needs_input', true, left('Question about: ' || t.title, 500),
        p_result ->> 'question', coalesce(p_result -> 'options', '[]'), t.id, p_run_id);
    update app.tasks set status = 'pending', active_run_id = null where organization_id = p_organization_id and id = t.id;
    perform app.task_settle(p_organization_id, t.id);
    return '{"status": "succeeded"}';
  end if;

  if jsonb_array_length(p_result -> 'artifacts') > 0 then
    select a.artifacts, a.missing, a.outputs into v_artifacts, v_missing, v_outputs
      from app.run_artifacts(p_organization_id, p_run_id, p_result -> 'artifacts') a;
  end if;
  if v_missing <> '[]' then
    perform app.fail(400, 'validation_failed', 'An artifact is not what was stored', v_missing);
  end if;

  if t.spec -> 'acceptanceCriteria' @> '[{"kind": "output_file"}]' then
    v_evaluation_digest := encode(sha256(convert_to((t.spec -> 'acceptanceCriteria')::text || v_outputs::text, 'UTF8')), 'hex');
    if p_checks is null or p_evaluation_digest is distinct from v_evaluation_digest then
      return jsonb_build_object('evaluationDigest', v_evaluation_digest, 'evaluate', jsonb_build_object('runId', p_run_id,
        'criteria', t.spec -> 'acceptanceCriteria', 'outputs', v_outputs));
    end if;
  end if;
  v_passed := not coalesce(p_checks, '[]') @> '[{"status": "failed"}]';
  v_result := jsonb_build_object('kind', 'completed', 'summary', coalesce(p_result ->> 'summary', ''),
    'artifacts', v_artifacts, 'completion', jsonb_build_object(
      'version', 1, 'taskVersion', t.version,
      'taskGraphRevision', v_graph_revision,
      'completionRevision', t.completion_revision + 1, 'runIds', jsonb_build_array(p_run_id),
      'disposition', case when v_passed then 'passed' else 'failed' end, 'checks', coalesce(p_checks, '[]')));
  if not v_passed then
    v_error := jsonb_build_object('code', 'acceptance_failed',
      'message', 'The output does not meet the acceptance criteria of the task', 'retryable', true);
  end if;
  perform app.run_finish_record(p_organization_id, p_run_id, case when v_passed then 'succeeded' else 'failed' end,
    'complete', p_body_hash, jsonb_build_object('kind', 'task_result', 'result', v_result), v_error, p_report);
  perform app.run_request_finish(p_organization_id, r.id);
  if v_passed and (v_staged -> 'asks')::boolean then
    -- What it asked comes first; it runs again with the answer.
    update app.tasks set status = 'pending', active_run_id = null, contract = null
      where organization_id = p_organization_id and id = t.id;
    perform app.task_settle(p_organization_id, t.id);
    return '{"status": "succeeded"}';
  end if;
  if v_passed and t.spec ->> 'verification' = 'agent' then
    perform app.profiles_lock_shared(p_organization_id);
    update app.tasks
      set status = 'pending', phase = 'verify', active_run_id = null, completion_revision = completion_revision + 1,
        contract = case when contract ? 'verdicts' then contract || '{"failures": 0}' end,
        verification = jsonb_build_object('runId', p_run_id, 'executorProfileId', r.agent_profile_id, 'result', v_result)
      where organization_id = p_organization_id and id = t.id;
    perform app.task_settle(p_organization_id, t.id);
    return '{"status": "succeeded"}';
  end if;
  if v_passed then
    update app.tasks
      set status = 'completed', phase = 'closed', active_run_id = null, completed_at = clock_timestamp(),
        completion_revision = completion_revision + 1, contract = null, result = v_result
      where organization_id = p_organization_id and id = t.id;
    perform app.task_ended(p_organization_id, array[t.id]);
    return '{"status": "succeeded"}';
  end if;
  update app.tasks
    set status = 'pending', active_run_id = null, completion_revision = completion_revision + 1,
      contract = coalesce(t.contract, '{}') || jsonb_build_object('failures', coalesce((t.contract ->> 'failures')::integer, 0) + 1,
        'runId', p_run_id, 'checks', jsonb_path_query_array(p_checks, '$[*] ? (@.status == "failed")'))
    where organization_id = p_organization_id and id = t.id;
  if coalesce((t.contract ->> 'failures')::integer, 0) >= 1 then
    insert into app.human_inbox_items (organization_id, kind, purpose, blocking, title, body, options, task_id, run_id)
      values (p_organization_id, 'question', 'repair', true, left('The result was refused twice: ' || t.title, 500),
        (select string_agg(c ->> 'summary', E'\n') from jsonb_array_elements(p_checks) c where c ->> 'status' = 'failed'),
        '["try_again", "accept", "cancel"]', t.id, p_run_id)
      on conflict (organization_id, task_id, purpose)
        where status = 'open' and purpose in ('repair', 'budget', 'prerequisite') do nothing;
  end if;
  perform app.task_settle(p_organization_id, t.id);
  return '{"status": "failed"}';
end
$$;

-- Stages what an agent says about its active run; it is applied when that run completes (docs/interface.md 2.19). A run has one
-- outcome: a repeat with the same key and content returns the same response. The service token may stage one too, and it alone
-- may stage an execution: the result with which the worker has to complete. The task itself does not change.
-- p_body: {runId, taskVersion, graphRevision, idempotencyKey, outcome}, validated in shape.
-- Locks: root → run request. Returns {outcome}, as a row.
-- Codes: 400 validation_failed, 401 agent_unauthorized, 404 organization_not_found | task_not_found, 409 state_conflict with
-- wrong_run | wrong_mode | differs | already_staged | stale, and those of plan_issues.
create or replace function app.task_outcome_stage(
  p_organization_id uuid, p_task_ref text, p_body jsonb, p_body_hash text, p_actor jsonb)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_task_id uuid;
  v_run_id uuid := (p_body ->> 'runId')::uuid;
  v_outcome jsonb := p_body -> 'outcome';
  v_kind text := p_body #>> '{outcome,kind}';
  v_status text;
  v_actor jsonb;
  v_operations jsonb := '[]';
  v_evidence jsonb;
  v_issues jsonb;
  t app.tasks;
  r app.run_requests;
  o app.task_outcomes;
begin
  v_task_id := app.task_find(p_organization_id, p_task_ref);
  perform app.task_roots_lock(p_organization_id, array[v_task_id], false);
  select status into v_status from app.organizations where id = p_organization_id and deleted_at is null;
  if not found then
    perform app.fail(404, 'organization_not_found', 'Organization not found');
  end if;
  if p_actor ->> 'kind' = 'capability' then
    -- Not actor_require: this is the only change that a verifier may make.
    v_actor := app.capability_actor(p_organization_id, p_actor ->> 'tokenHash', true);
    if v_actor is null then
      perform app.fail(401, 'agent_unauthorized', 'The execution capability is not valid');
    end if;
    if v_actor ->> 'taskId' is distinct from v_task_id::text or v_kind = 'execution' then
      perform app.fail(401, 'agent_unauthorized', 'The execution capability does not cover this outcome');
    end if;
  elsif p_actor ->> 'kind' is distinct from 'service' then
    raise exception 'unknown actor %', p_actor ->> 'kind';
  end if;
  if v_status = 'suspended' then
    perform app.fail(409, 'state_conflict', 'The organization is suspended');
  end if;
  select * into t from app.tasks where organization_id = p_organization_id and id = v_task_id;
  if not found then
    perform app.fail(404, 'task_not_found', 'Task not found');
  end if;

  select * into o from app.task_outcomes where organization_id = p_organization_id and run_id = v_run_id;
  if found and o.task_id = t.id then
    if o.idempotency_key <> p_body ->> 'idempotencyKey' then
      perform app.fail(409, 'state_conflict', 'The run has handed in its outcome',
        app.issue('runId', 'already_staged', 'a run hands in one outcome'));
    end if;
    if o.body_hash <> p_body_hash then
      perform app.fail(409, 'state_conflict', 'This idempotency key was used with another body',
        app.issue('idempotencyKey', 'differs', 'the first body counts'));
    end if;
    return jsonb_build_object('outcome', to_jsonb(o));
  end if;
  if t.active_run_id is distinct from v_run_id or v_actor ->> 'runId' is distinct from v_run_id::text and v_actor is not null then
    perform app.fail(409, 'state_conflict', 'The run is not the active run of this task',
      app.issue('runId', 'wrong_run', 'names no active run of this task'));
  end if;
  r := app.run_request_lock(p_organization_id, v_run_id);
  if not v_kind = any (case r.mode when 'plan' then array['plan', 'waiting', 'needs_input']
      when 'verify' then array['verification'] else array['execution', 'waiting', 'needs_input'] end) then
    perform app.fail(409, 'state_conflict', format('A run of mode %s does not end with %s', r.mode, v_kind),
      app.issue('outcome.kind', 'wrong_mode', format('the run is of mode %s', r.mode)));
  end if;
  if t.version <> (p_body ->> 'taskVersion')::integer then
    perform app.fail(409, 'state_conflict', format('The task is at version %s', t.version),
      app.issue('taskVersion', 'stale', format('the task is at version %s', t.version)));
  end if;
  if (p_body ->> 'graphRevision')::integer <> (select graph_revision from app.tasks
      where organization_id = p_organization_id and id = t.root_task_id) then
    perform app.fail(409, 'state_conflict', 'The hierarchy has changed',
      app.issue('graphRevision', 'stale', 'read the task again, and what is below it'));
  end if;

  perform app.action_wait_check(p_organization_id, t.id, r.mode, 'outcome.actionIds', v_outcome);
  if v_kind = 'plan' then
    v_operations := app.plan_resolve(p_organization_id, v_outcome -> 'operations');
    v_outcome := v_outcome || jsonb_build_object('operations', v_operations);
    v_issues := app.plan_issues(p_organization_id, t, v_operations);
    if v_issues is not null then
      perform app.fail((v_issues ->> 'status')::integer,
        case v_issues ->> 'status' when '400' then 'validation_failed' else 'state_conflict' end,
        'The plan cannot be applied', v_issues -> 'issues');
    end if;
  elsif v_kind = 'verification' then
    select e.evidence, e.issues into v_evidence, v_issues
      from app.outcome_evidence(p_organization_id, v_outcome -> 'evidence') e;
    if v_issues is not null then
      perform app.fail(400, 'validation_failed', 'A piece of evidence is not what was stored', v_issues);
    end if;
    v_outcome := v_outcome || jsonb_build_object('evidence', v_evidence);
  end if;
  insert into app.task_outcomes (organization_id, run_id, task_id, kind, idempotency_key, body_hash, task_version,
      graph_revision, outcome, reference_ids)
    values (p_organization_id, v_run_id, t.id, v_kind, p_body ->> 'idempotencyKey', p_body_hash,
      (p_body ->> 'taskVersion')::integer, (p_body ->> 'graphRevision')::integer, v_outcome, (
        select coalesce(jsonb_agg(distinct n.node), '[]')
          from jsonb_array_elements(v_operations) e(op)
          cross join lateral jsonb_array_elements_text(jsonb_build_array(e.op -> 'node') || (e.op -> 'on')) n(node)
          where n.node not like 'key:%'))
    returning * into o;
  update app.run_requests set staged_run_id = v_run_id where organization_id = p_organization_id and id = r.id;
  return jsonb_build_object('outcome', to_jsonb(o));
end
$$;

-- Run request leased → started; run (none) → starting; task pending → running (docs/interface.md 3.5). A repeat by the holder
-- returns the same response, including the execution token, which is derived from the run's id and the lease's secret.
-- Run request leased → published, 409, if there is no free capacity (limits were lowered after the pull) or the organization
-- was suspended or deleted at the same time; no attempt is counted. If the profile was disabled at the same time, or a budget
-- is used up, the task is settled instead.
-- Locks: root → run request → (over capacity only: dispatch) → run → (commit) dispatch.
-- Codes: 409 run_lease_expired with lease_lost | capacity | task_not_ready | differs.
create or replace function app.run_start(
  p_organization_id uuid, p_run_request_id uuid, p_run_id uuid, p_lease_token text, p_worker_id text,
  p_lease_seconds integer)
  returns jsonb
  language plpgsql security definer
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  r app.run_requests;
  t app.tasks;
  v_token text;
  v_over boolean;
  v_suspended boolean;
  v_disabled boolean;
  v_department text;
  v_published boolean;
  v_spend_limited boolean;
begin
  -- The root, which usually is the task itself.
  select * into t from app.tasks
    where organization_id = p_organization_id
      and id = (select k.root_task_id from app.run_requests q
        join app.tasks k on k.organization_id = q.organization_id and k.id = q.task_id
        where q.organization_id = p_organization_id and q.id = p_run_request_id)
    for no key update;
  v_spend_limited := t.spend_limited;
  select * into r from app.run_requests
    where organization_id = p_organization_id and id = p_run_request_id for no key update;
  if not found or not app.lease_is_current(r, p_lease_token) then
    perform app.lease_refuse('lease_lost');
  end if;
  v_token := encode(sha256(convert_to(
    'execution:' || p_run_id::text || ':' || split_part(p_lease_token, '.', 2), 'UTF8')), 'hex');
  if r.state = 'started' then
    if r.run_id <> p_run_id then
      perform app.lease_refuse('differs');
    end if;
    return app.run_start_response(r, v_token);
  end if;

  -- The pull reserved capacity, so the request is over capacity only if limits were lowered since. Suspending and disabling end
  -- the claims that they see; a claim that was not committed at that time is caught here.
  select d.held > d.capacity or l.held > l.capacity, d.suspended, p.status <> 'enabled', p.department,
      exists (select 1 from app.context_publications c where c.organization_id = p_organization_id)
    into v_over, v_suspended, v_disabled, v_department, v_published
    from app.dispatch d
    join app.dispatch_lanes l on l.organization_id = d.organization_id and l.kind = d.kind
    join app.agent_profiles p on p.organization_id = l.organization_id and p.id = l.agent_profile_id
    where d.organization_id = p_organization_id and d.kind = r.kind and l.agent_profile_id = r.agent_profile_id;
  if v_suspended then
    update app.run_requests
      set state = 'published', lease_secret_hash = null, lease_expires_at = null
      where organization_id = p_organization_id and id = r.id;
    return app.problem(409, 'run_lease_expired', 'The organization hands out no work now',
      app.issue('runRequestId', 'lease_lost', 'the claim was revoked, nothing was counted'));
  end if;
  if v_over then
    perform 1 from app.dispatch where organization_id = p_organization_id and kind = r.kind for no key update;
    select d.held > d.capacity or l.held > l.capacity into v_over
      from app.dispatch d
      join app.dispatch_lanes l on l.organization_id = d.organization_id and l.kind = d.kind
      where d.organization_id = p_organization_id and d.kind = r.kind and l.agent_profile_id = r.agent_profile_id;
    if v_over then
      update app.run_requests
        set state = 'published', lease_secret_hash = null, lease_expires_at = null
        where organization_id = p_organization_id and id = r.id;
      return app.problem(409, 'run_lease_expired', 'The organization or the profile has no free capacity',
        app.issue('runRequestId', 'capacity', 'published again, nothing was counted'));
    end if;
  end if;

  if r.kind = 'chat' then
    return app.chat_turn_start(r, p_run_id, p_worker_id, p_lease_seconds, v_token);
  end if;
  if t.id is distinct from r.task_id then
    select * into t from app.tasks where organization_id = p_organization_id and id = r.task_id;
  end if;
  if t.status <> 'pending' or v_disabled or (t.parent_id is not null or r.mode <> 'execute' or v_spend_limited)
     and app.task_budget_exhausted(p_organization_id, t.id) then
    -- The start of a sibling may have used up the budget of a parent since the pull: settling blocks the task and ends its
    -- request.
    if v_disabled and r.mode = 'verify' then
      -- Another verifier may be available: a new request goes to that one.
      perform app.task_requests_cancel(p_organization_id, array[t.id]);
    end if;
    perform app.task_settle(p_organization_id, t.id);
    return app.problem(409, 'run_lease_expired', 'The task is not ready to run',
      app.issue('runRequestId', 'task_not_ready', 'the task waits for something else'));
  end if;

  update app.run_requests
    set state = 'started', attempt = attempt + 1, run_id = p_run_id, worker_id = p_worker_id,
      execution_token_hash = encode(sha256(convert_to(v_token, 'UTF8')), 'hex'),
      lease_expires_at = clock_timestamp() + make_interval(secs => p_lease_seconds)
    where organization_id = p_organization_id and id = r.id
    returning * into r;
  insert into app.runs (organization_id, id, kind, task_id, run_request_id, agent_profile_id, attempt, mode, status,
      fence, lease_secret_hash, worker_id, spend_limited)
    values (p_organization_id, p_run_id, r.kind, r.task_id, r.id, r.agent_profile_id, r.attempt, r.mode, 'starting',
      r.fence, r.lease_secret_hash, p_worker_id, v_spend_limited)
    on conflict on constraint runs_pkey do nothing;
  if not found then
    -- The run of another request has this id.
    perform app.lease_refuse('differs');
  end if;
  update app.tasks
    set status = 'running', active_run_id = p_run_id, started_at = coalesce(started_at, clock_timestamp()),
      agent_run_count = agent_run_count + 1, consumed_agent_run_count = consumed_agent_run_count + 1
    where organization_id = p_organization_id and id = t.id;
  if t.parent_id is not null then
    with recursive up as (
      select a.id, a.parent_id from app.tasks a where a.organization_id = p_organization_id and a.id = t.parent_id
      union all
      select a.id, a.parent_id from app.tasks a join up on a.id = up.parent_id
        where a.organization_id = p_organization_id
    )
    update app.tasks a set consumed_agent_run_count = a.consumed_agent_run_count + 1
      from up where a.organization_id = p_organization_id and a.id = up.id;
  end if;
  if r.mode <> 'execute' then
    perform app.run_context_snapshot(p_organization_id, p_run_id, t, r.mode);
  end if;
  if t.spec -> 'inputs' <> '[]'::jsonb then
    perform app.run_inputs_snapshot(p_organization_id, p_run_id, t);
  end if;
  if v_published then
    perform app.run_documents_snapshot(p_organization_id, p_run_id, v_department);
  end if;
  return app.run_start_response(r, v_token);
end
$$;

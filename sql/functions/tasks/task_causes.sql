-- Why a task does not run right now, with the facts that a person needs to act: its blockers (tasks_blockers), or how far its
-- run request has come according to the rows that a pull reads. A task that is ready to be pulled has the single cause
-- `worker`; a completed one has none.
-- [{kind, …}]: dependency {taskId}, children {open}, schedule {until}, human {inboxItemId, title}, action {actionId, status, title,
-- inboxItemId: where a person decides about it}, budget {budgets, inboxItemId}, profile {agentProfileId, key, status, reason: verifier},
-- waiting {until, reason}, backoff {until, attempt, error}, onboarding, stopped {since}, suspended, organization_capacity {held,
-- capacity}, profile_capacity {agentProfileId, key, held, capacity}, worker {since}, claimed {until}, dispatch, running {runId, since},
-- failed {originTaskId, error}, cancelled {originTaskId}.
create or replace function app.task_causes(p_organization_id uuid, t app.tasks)
  returns jsonb
  language plpgsql stable
as $$
declare
  v_blockers jsonb;
  v_causes jsonb := '[]';
  r app.run_requests;
  d app.dispatch;
  v_status text;
  v_since timestamptz;
  l app.dispatch_lanes;
  v_key text;
begin
  if t.status = 'completed' then
    return v_causes;
  end if;
  if t.phase = 'closed' then
    return jsonb_build_array(jsonb_strip_nulls(jsonb_build_object('kind', t.status, 'originTaskId', t.failure_origin_id,
      'error', t.error)));
  end if;
  if t.status = 'running' then
    return jsonb_build_array(jsonb_build_object('kind', 'running', 'runId', t.active_run_id, 'since',
      (select u.started_at from app.runs u where u.organization_id = p_organization_id and u.id = t.active_run_id)));
  end if;
  if t.status = 'waiting' then
    return jsonb_build_array(jsonb_strip_nulls(jsonb_build_object('kind', 'waiting', 'until', t.waiting_until,
      'reason', t.waiting_reason)));
  end if;

  select b.blockers into v_blockers from app.tasks_blockers(p_organization_id, array[t.id]) b;
  if v_blockers <> '[]' then
    return (
      select jsonb_agg(jsonb_strip_nulls(b.blocker || case b.blocker ->> 'kind'
        when 'children' then jsonb_build_object('open', (select count(*) from app.tasks c
          where c.organization_id = p_organization_id and c.parent_id = t.id
            and c.status in ('pending', 'blocked', 'running', 'waiting')))
        when 'human' then jsonb_build_object('title', (select i.title from app.human_inbox_items i
          where i.organization_id = p_organization_id and i.id = (b.blocker ->> 'inboxItemId')::uuid))
        when 'action' then (
          select jsonb_build_object('status', a.status, 'title', a.summary, 'inboxItemId', (
              select i.id from app.human_inbox_items i
                where i.organization_id = p_organization_id and i.action_id = a.id and i.status = 'open'))
            from app.actions a
            where a.organization_id = p_organization_id and a.id = (b.blocker ->> 'actionId')::uuid)
        when 'budget' then jsonb_build_object(
          'budgets', case when t.replan ? 'asked' then jsonb_build_array(jsonb_build_object('taskId', t.id,
              'identifier', t.identifier_scope || '-' || t.identifier_number, 'budget', 'maxReplans',
              'used', t.replan_count, 'allowed', coalesce((t.spec #>> '{budget,maxReplans}')::integer, 2)))
            else app.task_budgets_exhausted(p_organization_id, t.id) end,
          'inboxItemId', (select i.id from app.human_inbox_items i where i.organization_id = p_organization_id
            and i.task_id = t.id and i.status = 'open' and i.purpose = 'budget'))
        -- The owner or, if the owner is enabled, the verifier; no profile: nobody can verify it.
        when 'profile' then coalesce(
          (select jsonb_build_object('agentProfileId', p.id, 'key', p.key, 'status', p.status)
            from app.agent_profiles p where p.organization_id = p_organization_id and p.id = t.owner_agent_profile_id
              and p.status <> 'enabled'),
          (select jsonb_build_object('reason', 'verifier', 'agentProfileId', p.id, 'key', p.key, 'status', p.status)
            from app.agent_profiles p where p.organization_id = p_organization_id and p.id = app.task_verifier(
              p_organization_id, t.spec, coalesce((t.verification ->> 'executorProfileId')::uuid, t.owner_agent_profile_id), false)),
          '{"reason": "verifier"}')
        else '{}' end) order by b.place)
      from jsonb_array_elements(v_blockers) with ordinality b(blocker, place));
  end if;

  select * into r from app.run_requests q
    where q.organization_id = p_organization_id and q.task_id = t.id and q.cancel_requested_at is null
      and q.state in ('queued', 'published', 'leased');
  if t.status = 'blocked' or not found then
    -- Its last blocker ended with time, and the dispatch job has not settled it yet.
    return '[{"kind": "dispatch"}]';
  end if;
  if r.state = 'leased' then
    return jsonb_build_array(jsonb_build_object('kind', 'claimed', 'until', r.lease_expires_at));
  end if;
  select * into d from app.dispatch where organization_id = p_organization_id and kind = r.kind;
  select * into l from app.dispatch_lanes
    where organization_id = p_organization_id and kind = r.kind and agent_profile_id = r.agent_profile_id;
  select key into v_key from app.agent_profiles where organization_id = p_organization_id and id = r.agent_profile_id;
  select status, work_dispatch_stopped_at into v_status, v_since from app.organizations where id = p_organization_id;
  if r.state = 'queued' and d.stopped and v_status = 'onboarding' then
    v_causes := v_causes || '[{"kind": "onboarding"}]';
  end if;
  if r.state = 'queued' and v_since is not null then
    v_causes := v_causes || jsonb_build_object('kind', 'stopped', 'since', v_since);
  end if;
  if r.state = 'queued' and r.due_at > clock_timestamp() then
    v_causes := v_causes || jsonb_strip_nulls(jsonb_build_object('kind', 'backoff', 'until', r.due_at, 'attempt',
      r.attempt + 1, 'error', app.task_failures(p_organization_id, t.id) #> '{0,error}'));
  end if;
  if d.suspended then
    v_causes := v_causes || '[{"kind": "suspended"}]';
  end if;
  if r.state = 'published' and d.held >= d.capacity then
    v_causes := v_causes || jsonb_build_object('kind', 'organization_capacity', 'held', d.held, 'capacity', d.capacity);
  end if;
  if r.state = 'published' and l.held >= l.capacity then
    v_causes := v_causes || jsonb_build_object('kind', 'profile_capacity', 'agentProfileId', l.agent_profile_id,
      'key', v_key, 'held', l.held, 'capacity', l.capacity);
  end if;
  if v_causes <> '[]' then
    return v_causes;
  end if;
  return jsonb_build_array(case r.state when 'queued' then '{"kind": "dispatch"}'
    else jsonb_build_object('kind', 'worker', 'since', r.published_at, 'agentProfileId', r.agent_profile_id,
      'key', v_key) end);
end
$$;

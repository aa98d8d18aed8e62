-- Task pending | blocked | waiting → pending | blocked, depending on its current blockers (tasks_blockers). A pending task gets
-- exactly one live run request, a blocked one none. An initiative in phase execute without blockers ends (initiative_close).
-- Once all actions that a task waits for are over, their results are among its answers, and it waits for none.
-- Other tasks stay as they are, so whoever changes a fact settles all tasks that it may affect.
-- The caller has locked the roots. Locks: (roots) → run requests → (commit) dispatch.
create or replace function app.task_settle(p_organization_id uuid, p_task_id uuid)
  returns void
  language plpgsql
as $$
declare
  t app.tasks;
  v_blockers jsonb;
begin
  select * into t from app.tasks where organization_id = p_organization_id and id = p_task_id;
  if t.status not in ('pending', 'blocked', 'waiting')
     or t.status = 'waiting' and t.waiting_until > clock_timestamp() then
    return;
  end if;
  if t.replan ? 'asked' and t.replan_count < coalesce((t.spec #>> '{budget,maxReplans}')::integer, 2) then
    update app.tasks set replan = replan - 'asked', replan_count = replan_count + 1
      where organization_id = p_organization_id and id = t.id
      returning * into t;
  end if;
  select b.blockers into v_blockers from app.tasks_blockers(p_organization_id, array[p_task_id]) b;
  if t.waiting_action_ids is not null and not v_blockers @> '[{"kind": "action"}]' then
    update app.tasks set answers = answers || app.action_results(p_organization_id, t.waiting_action_ids), waiting_action_ids = null
      where organization_id = p_organization_id and id = t.id
      returning * into t;
  end if;
  if v_blockers @> '[{"kind": "budget"}]' then
    perform app.task_budget_ask(t);
  elsif t.blockers @> '[{"kind": "budget"}]' then
    update app.human_inbox_items
      set status = 'responded', response = 'raise', responded_at = clock_timestamp(), updated_at = clock_timestamp()
      where organization_id = p_organization_id and task_id = t.id and status = 'open' and purpose = 'budget';
  end if;
  if v_blockers <> '[]' then
    if t.status <> 'blocked' or t.blockers <> v_blockers then
      update app.tasks set status = 'blocked', blockers = v_blockers, waiting_until = null, waiting_reason = null
        where organization_id = p_organization_id and id = t.id;
    end if;
    if t.status = 'pending' then
      perform app.task_requests_cancel(p_organization_id, array[t.id]);
    end if;
  elsif t.kind = 'initiative' and t.phase = 'execute' then
    perform app.initiative_close(p_organization_id, t.id);
  else
    if t.status <> 'pending' then
      update app.tasks set status = 'pending', blockers = '[]', waiting_until = null, waiting_reason = null
        where organization_id = p_organization_id and id = t.id;
    elsif exists (select 1 from app.run_requests where organization_id = p_organization_id and task_id = t.id
        and state in ('queued', 'published', 'leased') and cancel_requested_at is null) then
      return;
    end if;
    perform app.run_requests_ensure(p_organization_id, array[t.id]);
  end if;
end
$$;

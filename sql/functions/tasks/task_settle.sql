-- pending | blocked | waiting → pending | blocked, with what follows: a task that can run has exactly one live request,
-- a blocked one has none. An initiative whose plan was carried out, and that has no blockers, is over. Anything else is left
-- alone, so it may be called freely by whoever changed a cause. The caller holds the root's lock.
create or replace function app.task_settle(p_organization_id uuid, p_task_id uuid)
  returns void
  language plpgsql
as $$
declare
  t app.tasks;
  v_blockers jsonb;
  v_used jsonb;
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
  v_blockers := app.task_blockers(p_organization_id, t);
  if v_blockers @> '[{"kind": "budget"}]' then
    v_used := app.task_budgets_used(p_organization_id, p_task_id);
    insert into app.human_inbox_items (organization_id, kind, purpose, blocking, title, body, options, task_id)
      values (p_organization_id, 'question', 'budget', true,
        left(case when t.replan ? 'asked' then 'Replans used up: ' when v_used @> '[{"budget": "maxAgentRuns"}]'
          then 'Run budget used up: ' else 'Spend limit used up: ' end || t.title, 500),
        format(case when t.replan ? 'asked'
            then '%s needs another plan, and has used its replans. Raise them by one allowance, or cancel it.'
            else '%s has used up its budget, or that of a parent (%s). Raise it by one allowance, or cancel the task.' end,
          t.identifier_scope || '-' || t.identifier_number,
          (select string_agg(format('%s of %s: %s of %s', u ->> 'budget', u ->> 'identifier', u ->> 'used', u ->> 'allowed'), ', ')
            from jsonb_array_elements(v_used) u)),
        '["raise", "cancel"]', t.id)
      on conflict (organization_id, task_id, purpose)
        where status = 'open' and purpose in ('repair', 'budget', 'prerequisite') do nothing;
  else
    update app.human_inbox_items
      set status = 'responded', response = 'raise', responded_at = clock_timestamp(), updated_at = clock_timestamp()
      where organization_id = p_organization_id and task_id = t.id and status = 'open' and purpose = 'budget';
  end if;
  if v_blockers <> '[]' then
    update app.tasks set status = 'blocked', blockers = v_blockers, waiting_until = null, waiting_reason = null
      where organization_id = p_organization_id and id = t.id
        and (status <> 'blocked' or blockers <> v_blockers);
    perform app.task_requests_cancel(p_organization_id, array[t.id]);
  elsif t.kind = 'initiative' and t.phase = 'execute' then
    perform app.initiative_close(p_organization_id, t.id);
  else
    if t.status <> 'pending' then
      update app.tasks set status = 'pending', blockers = '[]', waiting_until = null, waiting_reason = null
        where organization_id = p_organization_id and id = t.id;
    end if;
    perform app.run_request_ensure(p_organization_id, t.id);
  end if;
end
$$;

-- The blockers of each given task, in the order [dependency, children, schedule, human, action, budget, profile]; an empty array: it
-- can run. They are computed from facts alone (edges, children, clock, questions, counters, profiles), so stored blockers
-- cannot drift from their causes.
-- A closed task is treated as open in phase execute, which is how task_retry reopens it, and so are all given tasks if one is
-- the parent of another.
-- This is the only implementation, for one task (task_settle, task_causes) and for thousands (task_retry). It has no search
-- path and is stable, so Postgres inlines it into the calling statement.
create or replace function app.tasks_blockers(p_organization_id uuid, p_task_ids uuid[])
  returns table (task_id uuid, blockers jsonb)
  language sql stable
as $$
  select t.id,
    to_jsonb(array(
      select jsonb_build_object('kind', 'dependency', 'taskId', d.depends_on_task_id)
        from app.task_dependencies d
        join app.tasks p on p.organization_id = d.organization_id and p.id = d.depends_on_task_id
        where d.organization_id = p_organization_id and d.task_id = t.id and d.required and p.status <> 'completed'
        order by d.created_at, d.id))
    -- In phase plan or verify an initiative does not wait for its children: a replan leaves open children as they are.
    || case when t.kind = 'initiative' and t.phase not in ('plan', 'verify') and (
        not exists (select 1 from app.tasks c where c.organization_id = p_organization_id and c.parent_id = t.id)
        or exists (select 1 from app.tasks c where c.organization_id = p_organization_id and c.parent_id = t.id
          and (c.status in ('pending', 'blocked', 'running', 'waiting') or c.id = any (p_task_ids))))
      then '[{"kind": "children"}]'::jsonb else '[]' end
    || case when t.scheduled_at > clock_timestamp() then jsonb_build_array(jsonb_build_object('kind', 'schedule', 'until',
        to_char(t.scheduled_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))) else '[]' end
    || to_jsonb(array(
      select jsonb_build_object('kind', 'human', 'inboxItemId', i.id)
        from app.human_inbox_items i
        where i.organization_id = p_organization_id and i.task_id = t.id and i.status = 'open' and i.blocking
          and i.purpose <> 'budget'
        order by i.created_at, i.id))
    || case when t.waiting_action_ids is null then '[]'::jsonb else to_jsonb(array(
      select jsonb_build_object('kind', 'action', 'actionId', a.id)
        from app.actions a
        where a.organization_id = p_organization_id and a.task_id = t.id and t.waiting_action_ids ? a.id::text
          and a.status in ('awaiting_approval', 'approved', 'executing', 'unknown')
        order by a.created_at, a.id)) end
    -- Looks up the budgets above once per parent; `offset 0` prevents one lookup per child.
    || case when t.replan ? 'asked' or (t.kind = 'task' or t.phase in ('plan', 'verify')) and (app.task_exceeds_budget(t)
        or t.parent_id is not null and t.parent_id in (
          select above.id
            from (select distinct g.parent_id as id from app.tasks g
              where g.organization_id = p_organization_id and g.id = any (p_task_ids) and g.parent_id is not null
              offset 0) above
            where app.task_budget_exhausted(p_organization_id, above.id)))
      then '[{"kind": "budget"}]'::jsonb else '[]' end
    || case when exists (select 1 from app.agent_profiles p where p.organization_id = p_organization_id
          and p.id = t.owner_agent_profile_id and p.status <> 'enabled')
        or t.phase = 'verify' and app.task_verifier(p_organization_id, t.spec,
          coalesce((t.verification ->> 'executorProfileId')::uuid, t.owner_agent_profile_id), true) is null
      then '[{"kind": "profile"}]'::jsonb else '[]' end
    from app.tasks t
    where t.organization_id = p_organization_id and t.id = any (p_task_ids)
$$;

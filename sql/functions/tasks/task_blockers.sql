-- Why an open task cannot run now, computed from the facts alone (edges, children, clock, questions, counters, profile),
-- so that stored blockers cannot drift from their causes. An empty array: it can.
create or replace function app.task_blockers(p_organization_id uuid, t app.tasks)
  returns jsonb
  language plpgsql stable
as $$
begin
  -- One expression: a retry of a large hierarchy asks this of thousands of tasks.
  return coalesce((
      select jsonb_agg(jsonb_build_object('kind', 'dependency', 'taskId', d.depends_on_task_id) order by d.created_at, d.id)
        from app.task_dependencies d
        join app.tasks p on p.organization_id = d.organization_id and p.id = d.depends_on_task_id
        where d.organization_id = p_organization_id and d.task_id = t.id and d.required and p.status <> 'completed'), '[]')
    -- While it is planned or judged an initiative does not wait for its children: a replan leaves those that are open alone.
    || case when t.kind = 'initiative' and t.phase not in ('plan', 'verify') and (
        not exists (select 1 from app.tasks c where c.organization_id = p_organization_id and c.parent_id = t.id)
        or exists (select 1 from app.tasks c where c.organization_id = p_organization_id and c.parent_id = t.id
                   and c.status in ('pending', 'blocked', 'running', 'waiting')))
      then '[{"kind": "children"}]'::jsonb else '[]' end
    || case when t.scheduled_at > clock_timestamp() then jsonb_build_array(jsonb_build_object('kind', 'schedule', 'until',
        to_char(t.scheduled_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))) else '[]' end
    || coalesce((
      select jsonb_agg(jsonb_build_object('kind', 'human', 'inboxItemId', i.id) order by i.created_at, i.id)
        from app.human_inbox_items i
        where i.organization_id = p_organization_id and i.task_id = t.id and i.status = 'open' and i.blocking
          and i.purpose <> 'budget'), '[]')
    || case when t.replan ? 'asked'
        or (t.kind = 'task' or t.phase <> 'execute') and app.task_budget_used(p_organization_id, t.id)
      then '[{"kind": "budget"}]'::jsonb else '[]' end
    || case when exists (select 1 from app.agent_profiles p where p.organization_id = p_organization_id
          and p.id = t.owner_agent_profile_id and p.status <> 'enabled')
        or t.phase = 'verify' and app.task_verifier(p_organization_id, t.spec,
          coalesce((t.verification ->> 'executorProfileId')::uuid, t.owner_agent_profile_id), true) is null
      then '[{"kind": "profile"}]'::jsonb else '[]' end;
end
$$;

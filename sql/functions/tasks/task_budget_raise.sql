-- Raises by one allowance every used-up budget of the task and of the initiatives above it, and its replans if it waits for
-- one. An allowance is the default of the kind for runs and replans, and the configured limit for spending. Tasks that waited
-- for these budgets are settled.
-- The caller has locked the root. Locks: (root) → … as task_settle.
create or replace function app.task_budget_raise(p_organization_id uuid, p_task_id uuid)
  returns void
  language plpgsql
as $$
declare
  v_raised uuid[];
  v_id uuid;
begin
  with recursive up as (
    select t.id, t.parent_id from app.tasks t where t.organization_id = p_organization_id and t.id = p_task_id
    union all
    select t.id, t.parent_id from app.tasks t join up on t.id = up.parent_id where t.organization_id = p_organization_id
  ), raised as (
    update app.tasks t
      -- Starts at what is consumed if the budget was lowered below that, so that one answer is enough.
      set spec = jsonb_set(t.spec, '{budget,maxAgentRuns}', to_jsonb(
        greatest((t.spec #>> '{budget,maxAgentRuns}')::integer, t.consumed_agent_run_count)
          + (app.task_spec_defaults(t.kind) #>> '{budget,maxAgentRuns}')::integer))
      from up
      where t.organization_id = p_organization_id and t.id = up.id
        and t.consumed_agent_run_count >= (t.spec #>> '{budget,maxAgentRuns}')::integer
      returning t.id
  )
  select coalesce(array_agg(id), '{}') into v_raised from raised;
  with recursive up as (
    select t.id, t.parent_id from app.tasks t where t.organization_id = p_organization_id and t.id = p_task_id
    union all
    select t.id, t.parent_id from app.tasks t join up on t.id = up.parent_id where t.organization_id = p_organization_id
  ), raised as (
    update app.tasks t
      set spend_allowance = a.allowance,
        spec = jsonb_set(t.spec, '{budget}', t.spec -> 'budget' || jsonb_strip_nulls(jsonb_build_object(
          'maxCostMinorUnits', case when t.spent_cost_minor_units >= (t.spec #>> '{budget,maxCostMinorUnits}')::bigint
            then t.spent_cost_minor_units + (a.allowance ->> 'maxCostMinorUnits')::bigint end,
          'maxTokens', case when t.spent_tokens >= (t.spec #>> '{budget,maxTokens}')::bigint
            then t.spent_tokens + (a.allowance ->> 'maxTokens')::bigint end)))
      from up join app.tasks o on o.organization_id = p_organization_id and o.id = up.id
        cross join lateral (select coalesce(o.spend_allowance, o.spec -> 'budget') as allowance) a
      where t.organization_id = p_organization_id and t.id = up.id
        and (t.spent_cost_minor_units >= (t.spec #>> '{budget,maxCostMinorUnits}')::bigint
          or t.spent_tokens >= (t.spec #>> '{budget,maxTokens}')::bigint)
      returning t.id
  )
  select v_raised || coalesce(array_agg(id), '{}') into v_raised from raised;
  update app.tasks
    set spec = jsonb_set(spec, '{budget,maxReplans}', to_jsonb(
      greatest((spec #>> '{budget,maxReplans}')::integer, replan_count)
        + (app.task_spec_defaults(kind) #>> '{budget,maxReplans}')::integer))
    where organization_id = p_organization_id and id = p_task_id and replan ? 'asked';
  for v_id in
    with recursive down as (
      select unnest(v_raised || p_task_id) as id
      union
      select c.id from app.tasks c join down on c.parent_id = down.id where c.organization_id = p_organization_id
    )
    select t.id from app.tasks t join down on down.id = t.id
      where t.organization_id = p_organization_id and t.status = 'blocked' and t.blockers @> '[{"kind": "budget"}]'
      order by t.depth desc, t.id
  loop
    perform app.task_settle(p_organization_id, v_id);
  end loop;
end
$$;

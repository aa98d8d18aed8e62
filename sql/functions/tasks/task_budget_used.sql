-- Is the run budget or a spend limit of the task, or of one of its ancestors, used up? task_budgets_used says which.
create or replace function app.task_budget_used(p_organization_id uuid, p_task_id uuid)
  returns boolean
  language sql stable
as $$
  with recursive up as (
    select t.parent_id, t.consumed_agent_run_count, t.spent_cost_minor_units, t.spent_tokens, t.spec, t.kind
      from app.tasks t where t.organization_id = p_organization_id and t.id = p_task_id
    union all
    select t.parent_id, t.consumed_agent_run_count, t.spent_cost_minor_units, t.spent_tokens, t.spec, t.kind
      from app.tasks t join up on t.id = up.parent_id
      where t.organization_id = p_organization_id
  )
  select coalesce(bool_or(up.consumed_agent_run_count >= coalesce(
    (up.spec #>> '{budget,maxAgentRuns}')::integer, case up.kind when 'initiative' then 500 else 10 end)
    or up.spent_cost_minor_units >= (up.spec #>> '{budget,maxCostMinorUnits}')::bigint
    or up.spent_tokens >= (up.spec #>> '{budget,maxTokens}')::bigint), false)
  from up
$$;

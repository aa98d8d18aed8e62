-- The used-up budgets of the task and of the initiatives above it, nearest first: [{taskId, identifier, budget, used,
-- allowed}]. Uses the same conditions as task_exceeds_budget.
create or replace function app.task_budgets_exhausted(p_organization_id uuid, p_task_id uuid)
  returns jsonb
  language sql stable
as $$
  with recursive up as (
    select t.*, 0 as distance from app.tasks t where t.organization_id = p_organization_id and t.id = p_task_id
    union all
    select t.*, up.distance + 1 from app.tasks t join up on t.id = up.parent_id
      where t.organization_id = p_organization_id
  )
  select coalesce(jsonb_agg(jsonb_build_object('taskId', up.id,
      'identifier', up.identifier_scope || '-' || up.identifier_number,
      'budget', b.budget, 'used', b.used, 'allowed', b.allowed) order by up.distance, b.budget), '[]')
    from up
    cross join lateral (values
      ('maxAgentRuns', up.consumed_agent_run_count::bigint, coalesce((up.spec #>> '{budget,maxAgentRuns}')::bigint,
        case up.kind when 'initiative' then 500 else 10 end)),
      ('maxCostMinorUnits', up.spent_cost_minor_units, (up.spec #>> '{budget,maxCostMinorUnits}')::bigint),
      ('maxTokens', up.spent_tokens, (up.spec #>> '{budget,maxTokens}')::bigint)
    ) b(budget, used, allowed)
    where b.used >= b.allowed
$$;

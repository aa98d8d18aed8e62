-- Whether the task has used up its own run budget or one of its own spend limits. Has no search path, so that Postgres inlines
-- it.
create or replace function app.task_exceeds_budget(t app.tasks)
  returns boolean
  language sql immutable
as $$
  select coalesce(t.consumed_agent_run_count >= coalesce((t.spec #>> '{budget,maxAgentRuns}')::integer,
      case t.kind when 'initiative' then 500 else 10 end)
    or t.spent_cost_minor_units >= (t.spec #>> '{budget,maxCostMinorUnits}')::bigint
    or t.spent_tokens >= (t.spec #>> '{budget,maxTokens}')::bigint, false)
$$;

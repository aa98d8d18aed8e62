-- Adds the usage of a finished run to its task and the tasks above it. Only for hierarchies that have a spend limit
-- (task_spend_track). The caller has locked the root and calls it once per run.
create or replace function app.task_spend_add(p_organization_id uuid, p_run_id uuid)
  returns void
  language sql
as $$
  with recursive up as (
    select t.id, t.parent_id, u.cost_minor_units as cost, u.input_tokens + u.output_tokens as tokens,
        u.cost_known::integer as known
      from app.runs u join app.tasks t on t.organization_id = u.organization_id and t.id = u.task_id
      where u.organization_id = p_organization_id and u.id = p_run_id
    union all
    select t.id, t.parent_id, up.cost, up.tokens, up.known from app.tasks t join up on t.id = up.parent_id
      where t.organization_id = p_organization_id
  )
  update app.tasks t
    set spent_cost_minor_units = t.spent_cost_minor_units + up.cost, spent_tokens = t.spent_tokens + up.tokens,
      cost_known_run_count = t.cost_known_run_count + up.known
    from up
    where t.organization_id = p_organization_id and t.id = up.id
$$;

-- Whether the run budget or a spend limit of the task, or of an initiative above it, is used up. task_budgets_exhausted tells
-- which.
create or replace function app.task_budget_exhausted(p_organization_id uuid, p_task_id uuid)
  returns boolean
  language plpgsql stable
as $$
begin
  return (
    with recursive up as (
      select t.parent_id, app.task_exceeds_budget(t) as exceeds from app.tasks t
        where t.organization_id = p_organization_id and t.id = p_task_id
      union all
      select t.parent_id, app.task_exceeds_budget(t) from app.tasks t join up on t.id = up.parent_id
        where t.organization_id = p_organization_id
    )
    select coalesce(bool_or(up.exceeds), false) from up);
end
$$;

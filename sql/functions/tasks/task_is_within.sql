-- Whether the task is p_root_of_subtree or below it. False for unknown and null tasks.
create or replace function app.task_is_within(p_organization_id uuid, p_task_id uuid, p_root_of_subtree uuid)
  returns boolean
  language sql stable
as $$
  with recursive up as (
    select t.id, t.parent_id from app.tasks t
      where t.organization_id = p_organization_id and t.id = p_task_id
    union all
    select t.id, t.parent_id from app.tasks t join up on t.id = up.parent_id
      where t.organization_id = p_organization_id
  )
  select exists (select 1 from up where up.id = p_root_of_subtree)
$$;

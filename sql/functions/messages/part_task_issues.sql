-- Issues with parts of kind task that name no task of the organization.
create or replace function app.part_task_issues(p_organization_id uuid, p_path text, p_parts jsonb)
  returns jsonb
  language sql stable
as $$
  select coalesce(jsonb_agg(app.issue(format('%s.%s.taskId', p_path, i.place - 1), 'unknown_task',
      'names no task of this organization') -> 0 order by i.place), '[]')
  from jsonb_array_elements(p_parts) with ordinality i(part, place)
  where i.part ->> 'kind' = 'task' and not exists (
    select 1 from app.tasks t where t.organization_id = p_organization_id and t.id = (i.part ->> 'taskId')::uuid)
$$;

-- The tasks whose hierarchies the end of a run can reach: its own task, and those named by its staged plan.
create or replace function app.run_task_ids(p_organization_id uuid, p_run_id uuid, p_task_id uuid)
  returns uuid[]
  language sql stable
as $$
  select array(
    select p_task_id
    union
    select (e.id)::uuid from app.task_outcomes o cross join jsonb_array_elements_text(o.reference_ids) e(id)
      where o.organization_id = p_organization_id and o.run_id = p_run_id)
$$;

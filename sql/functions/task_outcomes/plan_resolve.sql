-- The operations of a plan with their references resolved: `node` is the task that an operation is about, `on` the task that it
-- waits for. Each is 'key:<key>' for a task that the plan makes, the id of an existing task, or null if there is neither.
create or replace function app.plan_resolve(p_organization_id uuid, p_operations jsonb)
  returns jsonb
  language sql stable
as $$
  with keys as (
    select coalesce(array_agg(o ->> 'key'), '{}') as made from jsonb_array_elements(p_operations) o where o ->> 'op' = 'create_task'
  )
  select coalesce(jsonb_agg(o.op || case o.op ->> 'op'
      when 'create_task' then jsonb_build_object('node', 'key:' || (o.op ->> 'key'), 'on', (
        select coalesce(jsonb_agg(case when d.ref = any (keys.made) then 'key:' || d.ref
            else app.task_find(p_organization_id, d.ref)::text end order by d.place), '[]')
          from jsonb_array_elements_text(coalesce(o.op -> 'dependsOn', '[]')) with ordinality d(ref, place)))
      when 'add_dependency' then jsonb_build_object(
        'node', case when o.op ->> 'task' = any (keys.made) then 'key:' || (o.op ->> 'task')
          else app.task_find(p_organization_id, o.op ->> 'task')::text end,
        'on', jsonb_build_array(case when o.op ->> 'dependsOn' = any (keys.made) then 'key:' || (o.op ->> 'dependsOn')
          else app.task_find(p_organization_id, o.op ->> 'dependsOn')::text end))
      else jsonb_build_object('node', app.task_find(p_organization_id, o.op ->> 'task'), 'on', '[]'::jsonb)
    end order by o.place), '[]')
  from keys cross join jsonb_array_elements(p_operations) with ordinality o(op, place)
$$;

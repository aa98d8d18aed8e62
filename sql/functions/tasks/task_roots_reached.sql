-- The roots whose tasks may change when tasks under p_roots end: those of their dependents and, if a dependent is an
-- initiative, which may end too, those of the dependents of its hierarchy. Plain tasks only become ready.
create or replace function app.task_roots_reached(p_organization_id uuid, p_roots uuid[])
  returns uuid[]
  language sql stable
as $$
  with recursive reached as (
    select r as root_id, true as may_end from unnest(p_roots) r
    union
    select d.root_task_id, w.kind = 'initiative'
    from reached
    join app.task_dependencies d on d.organization_id = p_organization_id
      and d.depends_on_root_task_id = reached.root_id and d.root_task_id <> d.depends_on_root_task_id
    join app.tasks w on w.organization_id = d.organization_id and w.id = d.task_id
    where reached.may_end
  )
  select array_agg(distinct root_id) from reached
$$;

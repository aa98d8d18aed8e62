-- Adds one edge; the caller has locked the roots of both tasks. Refuses a deadlock: a path from the prerequisite back to the
-- task, over edges and from an initiative to its children (so an ancestor is refused as well). Returns the edge, new or
-- existing.
-- Locks: (roots) → the edges of the organization (advisory). The roots are not enough: a cycle can cross hierarchies while no
-- two of its new edges share one (a→b and c→d are added at once, b→c and d→a exist).
create or replace function app.task_dependency_add(
  p_organization_id uuid, p_task_id uuid, p_depends_on_task_id uuid, p_required boolean)
  returns app.task_dependencies
  language plpgsql
as $$
declare
  d app.task_dependencies;
begin
  select * into d from app.task_dependencies
    where organization_id = p_organization_id and task_id = p_task_id and depends_on_task_id = p_depends_on_task_id;
  if found then
    if d.required <> p_required then
      perform app.fail(409, 'state_conflict', 'This dependency exists with another value of required',
        app.issue('required', 'edge_differs', format('the edge is there with required = %s', d.required)));
    end if;
    return d;
  end if;
  perform pg_advisory_xact_lock(hashtextextended('task_dependencies:' || p_organization_id, 0));
  if exists (
    with recursive reached as (
      select p_depends_on_task_id as id
      union
      select next.id from reached cross join lateral (
        select e.depends_on_task_id as id from app.task_dependencies e
          where e.organization_id = p_organization_id and e.task_id = reached.id
        union all
        select c.id from app.tasks c where c.organization_id = p_organization_id and c.parent_id = reached.id
      ) next
    )
    select 1 from reached where id = p_task_id
  ) then
    perform app.fail(409, 'state_conflict', 'The dependency would close a cycle, or points at an ancestor',
      app.issue('dependsOn', 'cycle', 'the prerequisite waits for this task itself'));
  end if;
  insert into app.task_dependencies
      (organization_id, task_id, depends_on_task_id, root_task_id, depends_on_root_task_id, required, created_at)
    -- The clock, not now(): several edges of one call are listed in the order in which they were named.
    select p_organization_id, t.id, p.id, t.root_task_id, p.root_task_id, p_required, clock_timestamp()
      from app.tasks t, app.tasks p
      where t.organization_id = p_organization_id and t.id = p_task_id
        and p.organization_id = p_organization_id and p.id = p_depends_on_task_id
    returning * into d;
  update app.tasks set graph_revision = graph_revision + 1
    where organization_id = p_organization_id and id in (d.root_task_id, d.depends_on_root_task_id);
  perform app.prerequisite_notify(p_organization_id, array[p_depends_on_task_id], p_task_id);
  return d;
end
$$;

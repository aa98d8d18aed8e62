-- Removes edges of a task to the given prerequisites, and settles it: the last blocker may go with them. Raises the graph
-- revision of both hierarchies. The caller has locked the roots of all these tasks.
-- Locks: (roots) → inbox item → … as task_settle.
create or replace function app.task_dependencies_drop(p_organization_id uuid, p_task_id uuid, p_depends_on_ids uuid[])
  returns void
  language plpgsql
as $$
begin
  with dropped as (
    delete from app.task_dependencies
      where organization_id = p_organization_id and task_id = p_task_id and depends_on_task_id = any (p_depends_on_ids)
      returning root_task_id, depends_on_root_task_id)
  update app.tasks set graph_revision = graph_revision + 1
    where organization_id = p_organization_id
      and id in (select root_task_id from dropped union select depends_on_root_task_id from dropped);
  perform app.prerequisite_close(p_organization_id, array[p_task_id]);
  perform app.task_settle(p_organization_id, p_task_id);
end
$$;

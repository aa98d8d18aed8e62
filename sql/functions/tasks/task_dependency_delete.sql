-- Removes an edge of an open task that is not running. If it was the last blocker: task blocked → pending, with a run request.
-- Locks: roots of both tasks, and those that the end of an initiative can reach → inbox item → … as task_settle.
-- Returns {dependency}, the edge as it was.
-- Codes: 401 agent_unauthorized, 404 organization_not_found | task_not_found (also where there is no such edge), 409
-- state_conflict.
create or replace function app.task_dependency_delete(
  p_organization_id uuid, p_task_ref text, p_depends_on text, p_actor jsonb)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_task_id uuid;
  v_depends_on uuid;
  t app.tasks;
  d app.task_dependencies;
begin
  v_task_id := app.task_find(p_organization_id, p_task_ref);
  v_depends_on := app.task_find(p_organization_id, p_depends_on);
  -- An initiative whose children are over ends with its last prerequisite.
  perform app.task_roots_lock(p_organization_id, array[v_task_id, v_depends_on], true);
  perform app.actor_require(p_organization_id, p_actor, v_task_id);
  select * into t from app.tasks where organization_id = p_organization_id and id = v_task_id;
  if not found then
    perform app.fail(404, 'task_not_found', 'Task not found');
  end if;
  select * into d from app.task_dependencies
    where organization_id = p_organization_id and task_id = v_task_id and depends_on_task_id = v_depends_on;
  if not found then
    perform app.fail(404, 'task_not_found', 'The task has no such prerequisite',
      app.issue('dependsOnRef', 'not_found', 'is no prerequisite of the task'));
  end if;
  if t.status not in ('pending', 'blocked', 'waiting') then
    perform app.fail(409, 'state_conflict', format('A %s task keeps its dependencies', t.status));
  end if;
  perform app.task_dependencies_drop(p_organization_id, v_task_id, array[v_depends_on]);
  return jsonb_build_object('dependency', to_jsonb(d));
end
$$;

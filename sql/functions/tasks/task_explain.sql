-- Explains why a task is not running (docs/interface.md 2.9.9): its causes, then those of the tasks that it waits for, nearest
-- first: required prerequisites, open children, the task whose failure ended it. At most p_limit tasks; of many children, first
-- those that wait for a person. Reads only, from one snapshot.
-- Returns {tasks: [{id, identifier, title, kind, status, phase, distance, viaTaskId, causes}], truncated}. Codes: 404
-- task_not_found.
create or replace function app.task_explain(p_organization_id uuid, p_task_ref text, p_limit integer default 100)
  returns jsonb
  language plpgsql stable security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_ids uuid[];
  v_via uuid[] := array[null::uuid];
  v_distances integer[] := '{0}';
  v_place integer := 1;
  v_next uuid;
  v_truncated boolean := false;
  v_causes jsonb;
  v_nodes jsonb[] := '{}';
  t app.tasks;
begin
  v_ids := array[app.task_find(p_organization_id, p_task_ref)];
  if v_ids[1] is null or not exists (select 1 from app.organizations o
      where o.id = p_organization_id and o.deleted_at is null) then
    perform app.fail(404, 'task_not_found', 'Task not found');
  end if;
  while v_place <= cardinality(v_ids) loop
    select * into t from app.tasks where organization_id = p_organization_id and id = v_ids[v_place];
    v_causes := app.task_causes(p_organization_id, t);
    v_nodes := v_nodes || jsonb_build_object('id', t.id, 'identifier', t.identifier_scope || '-' || t.identifier_number,
      'title', t.title, 'kind', t.kind, 'status', t.status, 'phase', t.phase, 'distance', v_distances[v_place],
      'viaTaskId', v_via[v_place], 'causes', v_causes);
    for v_next in
      select (c.cause ->> 'taskId')::uuid from jsonb_array_elements(v_causes) c(cause)
        where c.cause ->> 'kind' = 'dependency'
      union all
      select (c.cause ->> 'originTaskId')::uuid from jsonb_array_elements(v_causes) c(cause) where c.cause ? 'originTaskId'
      union all
      (select c.id from app.tasks c
        where v_causes @> '[{"kind": "children"}]' and c.organization_id = p_organization_id and c.parent_id = t.id
          and c.status in ('pending', 'blocked', 'running', 'waiting')
        order by not c.blockers @> '[{"kind": "human"}]' and not c.blockers @> '[{"kind": "action"}]'
          and not c.blockers @> '[{"kind": "budget"}]' and not c.blockers @> '[{"kind": "profile"}]', c.status = 'blocked', c.created_at, c.id
        limit p_limit + 1)
    loop
      if v_next = any (v_ids) then
        continue;
      end if;
      if cardinality(v_ids) = p_limit then
        v_truncated := true;
        exit;
      end if;
      v_ids := v_ids || v_next;
      v_via := v_via || t.id;
      v_distances := v_distances || v_distances[v_place] + 1;
    end loop;
    v_place := v_place + 1;
  end loop;
  return jsonb_build_object('tasks', to_jsonb(v_nodes), 'truncated', v_truncated);
end
$$;

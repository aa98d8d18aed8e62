-- Records an uploaded input of an open task. The same path again replaces it for later runs; a run keeps the inputs that it
-- started with. p_storage_key null: only checks, before the upload.
-- Locks: root → run request of a capability. Codes: 401 agent_unauthorized, 404 organization_not_found | task_not_found, 409
-- state_conflict.
create or replace function app.task_input_put(
  p_organization_id uuid, p_task_ref text, p_path text, p_storage_key text, p_size bigint, p_sha256 text,
  p_media_type text, p_actor jsonb)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_task_id uuid;
  t app.tasks;
  i app.task_inputs;
begin
  v_task_id := app.task_find(p_organization_id, p_task_ref);
  perform app.task_roots_lock(p_organization_id, array[v_task_id], false);
  perform app.actor_require(p_organization_id, p_actor, v_task_id);
  select * into t from app.tasks where organization_id = p_organization_id and id = v_task_id;
  if not found then
    perform app.fail(404, 'task_not_found', 'Task not found');
  end if;
  if t.phase = 'closed' then
    perform app.fail(409, 'state_conflict', format('The task is %s', t.status));
  end if;
  if p_storage_key is null then
    -- The check before an upload.
    return jsonb_build_object('taskId', t.id);
  end if;
  if (select count(*) from app.task_inputs where organization_id = p_organization_id and task_id = t.id) >= 200
     and not exists (select 1 from app.task_inputs
                     where organization_id = p_organization_id and task_id = t.id and path = p_path) then
    perform app.fail(409, 'state_conflict', 'A task holds at most 200 uploaded inputs');
  end if;
  insert into app.task_inputs (organization_id, task_id, path, storage_key, size, sha256, media_type)
    values (p_organization_id, t.id, p_path, p_storage_key, p_size, p_sha256, p_media_type)
    on conflict (organization_id, task_id, path) do update
      set storage_key = excluded.storage_key, size = excluded.size, sha256 = excluded.sha256,
        media_type = excluded.media_type, created_at = now()
    returning * into i;
  return jsonb_build_object('taskId', t.id, 'input', to_jsonb(i));
end
$$;

-- Ends an open initiative whose children have all ended. If at least one child completed: → completed or, if its spec requires
-- a verdict, → phase verify. Otherwise it is replanned (initiative_replan).
-- The caller has locked the roots. Locks: (roots) → organization (shared, without waiting) → run requests → (commit) dispatch.
create or replace function app.initiative_close(p_organization_id uuid, p_task_id uuid)
  returns void
  language plpgsql
as $$
declare
  t app.tasks;
  v_completed integer;
  v_result jsonb;
begin
  select * into t from app.tasks where organization_id = p_organization_id and id = p_task_id;
  select count(*) into v_completed from app.tasks
    where organization_id = p_organization_id and parent_id = p_task_id and status = 'completed';
  if v_completed = 0 then
    perform app.initiative_replan(p_organization_id, p_task_id, '{"reason": "none_completed"}');
    return;
  end if;
  v_result := jsonb_build_object('kind', 'completed', 'summary', format('%s of the tasks below completed', v_completed),
    'artifacts', '[]'::jsonb);
  if t.spec ->> 'verification' = 'agent' then
    perform app.profiles_lock_shared(p_organization_id);
    update app.tasks
      set phase = 'verify', verification = jsonb_build_object('executorProfileId', owner_agent_profile_id, 'result', v_result)
      where organization_id = p_organization_id and id = p_task_id;
    perform app.task_settle(p_organization_id, p_task_id);
    return;
  end if;
  update app.tasks
    set status = 'completed', phase = 'closed', blockers = '[]', completed_at = clock_timestamp(),
      completion_revision = completion_revision + 1, replan = null, contract = null, result = v_result
    where organization_id = p_organization_id and id = p_task_id;
  perform app.tasks_propagate_end(p_organization_id, array[p_task_id]);
end
$$;

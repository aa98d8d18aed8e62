-- An open initiative whose children are all over: completed when at least one of them was, else failed.
create or replace function app.initiative_close(p_organization_id uuid, p_task_id uuid)
  returns void
  language plpgsql
  set search_path = pg_catalog, pg_temp
as $$
declare
  v_completed integer;
begin
  select count(*) into v_completed from app.tasks
    where organization_id = p_organization_id and parent_id = p_task_id and status = 'completed';
  if v_completed = 0 then
    perform app.task_fail(p_organization_id, p_task_id, jsonb_build_object('code', 'no_child_completed',
      'message', 'None of the tasks below was completed', 'retryable', false));
    return;
  end if;
  update app.tasks
    set status = 'completed', phase = 'closed', blockers = '[]', completed_at = clock_timestamp(),
      completion_revision = completion_revision + 1,
      result = jsonb_build_object('kind', 'completed', 'summary',
        format('%s of the tasks below completed', v_completed), 'artifacts', '[]'::jsonb)
    where organization_id = p_organization_id and id = p_task_id;
  perform app.task_ended(p_organization_id, array[p_task_id]);
end
$$;

alter function app.initiative_close owner to runner_scoped;
revoke all on function app.initiative_close from public;

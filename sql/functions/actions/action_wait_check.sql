-- Refuses a result that waits for actions when they are not the task's own, or when the run is not of mode execute. p_result: {kind:
-- waiting, actionIds?}, validated in shape; any other result passes. Codes: 400 validation_failed (unknown_action, wrong_wait).
create or replace function app.action_wait_check(
  p_organization_id uuid, p_task_id uuid, p_mode text, p_path text, p_result jsonb)
  returns void
  language plpgsql
as $$
begin
  if not p_result ? 'actionIds' or p_result ->> 'kind' <> 'waiting' then
    return;
  end if;
  if p_mode <> 'execute' then
    perform app.fail(400, 'validation_failed', 'Only execute runs wait for actions',
      app.issue(p_path, 'wrong_wait', format('the run is of mode %s', p_mode)));
  end if;
  if exists (select from jsonb_array_elements_text(p_result -> 'actionIds') w(id)
      where not exists (select from app.actions a
        where a.organization_id = p_organization_id and a.task_id = p_task_id and a.id = w.id::uuid)) then
    perform app.fail(400, 'validation_failed', 'A task waits for its own actions',
      app.issue(p_path, 'unknown_action', 'names no action of this task'));
  end if;
end
$$;

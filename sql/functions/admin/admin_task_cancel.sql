-- Task open → cancelled by decision of an administrator: task_cancel, as by a person, with its audit entry. A repeat changes
-- nothing, but is recorded too. Returns {task, audit_entry_id}.
-- Codes: 404 organization_not_found | task_not_found, 409 state_conflict (completed, failed).
create or replace function app.admin_task_cancel(
  p_organization_id uuid, p_task_ref text, p_admin text, p_request_id text default null)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_response jsonb := app.task_cancel(p_organization_id, p_task_ref, '{"kind": "owner"}');
begin
  return app.admin_record(p_organization_id, p_admin, 'task.cancel', 'task', v_response #>> '{task,id}',
    jsonb_build_object('taskRef', p_task_ref), v_response, jsonb_build_object('status', v_response #> '{task,status}'),
    p_request_id);
end
$$;

-- Schedule paused → active by decision of an administrator: schedule_resume with its audit entry. p_next_run_at, p_version:
-- as there. Returns {schedule, audit_entry_id}. Codes: 404 organization_not_found | not_found, 409 state_conflict (stale).
create or replace function app.admin_schedule_resume(
  p_organization_id uuid, p_schedule_ref text, p_next_run_at timestamptz, p_version integer, p_admin text,
  p_request_id text default null)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_response jsonb := app.schedule_resume(p_organization_id, p_schedule_ref, p_next_run_at, p_version,
    '{"kind": "owner"}');
begin
  return app.admin_record(p_organization_id, p_admin, 'schedule.resume', 'schedule', v_response #>> '{schedule,id}',
    jsonb_build_object('scheduleRef', p_schedule_ref), v_response,
    jsonb_build_object('status', v_response #> '{schedule,status}', 'nextRunAt', v_response #> '{schedule,next_run_at}'),
    p_request_id);
end
$$;

-- Schedule active → paused by decision of an administrator: schedule_pause with its audit entry. A repeat changes nothing, but
-- is recorded too. Returns {schedule, audit_entry_id}. Codes: 404 organization_not_found | not_found.
create or replace function app.admin_schedule_pause(
  p_organization_id uuid, p_schedule_ref text, p_admin text, p_request_id text default null)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_response jsonb := app.schedule_pause(p_organization_id, p_schedule_ref, '{"kind": "owner"}');
begin
  return app.admin_record(p_organization_id, p_admin, 'schedule.pause', 'schedule', v_response #>> '{schedule,id}',
    jsonb_build_object('scheduleRef', p_schedule_ref), v_response,
    jsonb_build_object('status', v_response #> '{schedule,status}'), p_request_id);
end
$$;

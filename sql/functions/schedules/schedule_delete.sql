-- Removes the schedule and closes its open notification. The tasks that it made stay.
-- Locks: schedule → run request of a capability → inbox item.
-- Codes: 401 agent_unauthorized, 404 organization_not_found | not_found (also for a repeat), 409 state_conflict (suspended).
create or replace function app.schedule_delete(p_organization_id uuid, p_schedule_ref text, p_actor jsonb)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  s app.schedules := app.schedule_find(p_organization_id, p_schedule_ref);
begin
  perform app.actor_require(p_organization_id, p_actor, null);
  if s.id is null then
    perform app.fail(404, 'not_found', 'Schedule not found');
  end if;
  update app.human_inbox_items set status = 'cancelled', updated_at = clock_timestamp()
    where organization_id = p_organization_id and schedule_id = s.id and status = 'open';
  delete from app.schedules where organization_id = p_organization_id and id = s.id;
  return jsonb_build_object('schedule', to_jsonb(s));
end
$$;

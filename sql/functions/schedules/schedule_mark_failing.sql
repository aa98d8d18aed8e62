-- Records that a fire made no task for a reason that a person has to fix, and notifies a person: once, until the schedule makes
-- a task again or is resumed. The caller has locked the schedule. Locks: (schedule) → inbox item.
create or replace function app.schedule_mark_failing(s app.schedules, p_reason text, p_now timestamptz)
  returns void
  language plpgsql
as $$
begin
  if s.failing_since is not null then
    return;
  end if;
  update app.schedules set failing_since = p_now where organization_id = s.organization_id and id = s.id;
  -- A notification from before a resume may still be open.
  insert into app.human_inbox_items (organization_id, kind, purpose, title, body, schedule_id)
    values (s.organization_id, 'notification', 'schedule', left('A schedule makes no task: ' || s.title, 500),
      format('%s fired and made no task: %s. It goes on, and makes tasks again once that is mended.', s.key, p_reason),
      s.id)
    on conflict (organization_id, schedule_id) where status = 'open' and schedule_id is not null
    do update set body = excluded.body, updated_at = clock_timestamp();
end
$$;

-- Wakes the heartbeat that waits for the cancel of a run, so that its worker stops at once. A trigger: no transition that cancels
-- can forget it.
create or replace function app.run_requests_wake_stop()
  returns trigger
  language plpgsql
as $$
begin
  if new.state = 'started' and old.cancel_requested_at is null and new.cancel_requested_at is not null then
    perform app.wake('runner_stop', new.run_id::text);
  end if;
  return null;
end
$$;

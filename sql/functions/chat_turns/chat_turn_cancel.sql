-- Ends the turn of a pending reply at the request of a person. Not started: message pending → cancelling → cancelled, run
-- request published | leased → cancelled. Started: message pending → cancelling, run → cancelled; the request keeps its
-- capacity until the worker reports or the lease ends. What it proposed and is not under way is cancelled at once.
-- The caller has locked the request. Locks: (run request) → run → message → actions. Returns the message in its revision with status
-- cancelling.
create or replace function app.chat_turn_cancel(r app.run_requests)
  returns jsonb
  language plpgsql
as $$
declare
  m app.messages;
begin
  update app.messages
    set status = 'cancelling', revision = revision + 1, write_hash = null,
      updated_at = greatest(clock_timestamp(), updated_at)
    where organization_id = r.organization_id and id = r.message_id
    returning * into m;
  if r.state = 'started' then
    update app.run_requests set cancel_requested_at = clock_timestamp()
      where organization_id = r.organization_id and id = r.id;
    update app.runs
      set status = 'cancelled', finished_at = clock_timestamp(), updated_at = clock_timestamp()
      where organization_id = r.organization_id and id = r.run_id;
    perform app.actions_cancel_of_message(r.organization_id, r.message_id);
    return app.message_row(m);
  end if;
  update app.run_requests
    set state = 'cancelled', finished_at = clock_timestamp(), lease_secret_hash = null, lease_expires_at = null
    where organization_id = r.organization_id and id = r.id;
  perform app.message_end(r.organization_id, r.message_id, 'cancelled', null);
  return app.message_row(m);
end
$$;

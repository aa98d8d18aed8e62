-- Notes that those who wait on a channel may find something after this commit: `call` (engine/db/call.ts) reads the note in
-- the statement that made it, and notifies after the commit. A line for each channel and payload, once. Past 16 kB nothing is
-- noted: who waits looks again within two seconds.
create or replace function app.wake(p_channel text, p_payload text)
  returns void
  language plpgsql
as $$
declare
  v_noted constant text := current_setting('app.wakes', true);
  v_line constant text := p_channel || ' ' || p_payload;
begin
  if coalesce(v_noted, '') = '' then
    perform set_config('app.wakes', v_line, true);
  elsif length(v_noted) < 16384 and position(v_line in v_noted) = 0 then
    perform set_config('app.wakes', v_noted || E'\n' || v_line, true);
  end if;
end
$$;

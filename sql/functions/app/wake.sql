-- Records that listeners of a channel may find something new after this commit: `call` (engine/db/call.ts) reads the record in
-- the statement that made it, and notifies after the commit. One line per channel and payload. Beyond 16 KiB nothing more is
-- recorded; listeners poll every two seconds anyway.
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

-- Cuts and indexes the next pieces of a long message, at most p_limit. Called by the job until it returns {waiting: false}.
-- A piece are 30,000 characters, and the next one begins 4,000 before its end, so that whatever is searched for lies in one of
-- them as a whole (200 characters are folded to 3,600 at most). Where a piece begins follows from its number: a call that is
-- repeated, or goes on after a crash, cuts the same ones.
-- Locks: message (for key share: its removal takes the pieces with it) → the piece that waits, without waiting. Returns {filled,
-- waiting}; what another call is cutting is not waiting.
create or replace function app.message_chunks_fill(p_organization_id uuid, p_message_id uuid, p_limit integer)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_size constant integer := 30000;
  v_step constant integer := 26000;
  k app.message_chunks;
  v_text text;
  v_from integer;
  v_reached integer;
begin
  -- A final message does not change.
  select app.parts_raw(m.parts) into v_text from app.messages m
    where m.organization_id = p_organization_id and m.id = p_message_id for key share;
  select * into k from app.message_chunks
    where organization_id = p_organization_id and message_id = p_message_id and search_text is null
    for no key update skip locked;
  if not found then
    return '{"filled": 0, "waiting": false}';
  end if;
  if length(app.search_fold(left(v_text, v_size))) > v_size then
    -- The beginning was cut, because folding made it longer.
    v_from := (k.number - 1) * v_step + 1;
    v_reached := case when k.number = 1 then 0 else v_from - 1 - v_step + v_size end;
  else
    v_from := k.number * v_step + 1;
    v_reached := v_from - 1 - v_step + v_size;
  end if;
  for v_filled in 0 .. p_limit - 1 loop
    if v_reached >= length(v_text) then
      delete from app.message_chunks
        where organization_id = p_organization_id and message_id = p_message_id and number = k.number;
      return jsonb_build_object('filled', v_filled, 'waiting', false);
    end if;
    update app.message_chunks set search_text = app.search_fold(substr(v_text, v_from, v_size))
      where organization_id = p_organization_id and message_id = p_message_id and number = k.number;
    v_reached := v_from - 1 + v_size;
    v_from := v_from + v_step;
    k.number := k.number + 1;
    insert into app.message_chunks (organization_id, message_id, number, chat_id)
      values (k.organization_id, k.message_id, k.number, k.chat_id);
  end loop;
  return jsonb_build_object('filled', p_limit, 'waiting', true);
end
$$;

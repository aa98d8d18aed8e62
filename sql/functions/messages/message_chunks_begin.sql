-- Lets the job cut what lies beyond the beginning of a message that has just become final, if that is not all of its text.
create or replace function app.message_chunks_begin(m app.messages)
  returns void
  language plpgsql
as $$
begin
  -- Not for most messages: at most four characters become one when they are folded.
  if length(m.search_text) >= 7500 and (length(m.search_text) = 30000 or length(app.parts_raw(m.parts)) > 30000) then
    insert into app.message_chunks (organization_id, message_id, number, chat_id)
      values (m.organization_id, m.id, 1, m.chat_id);
  end if;
end
$$;

-- Streams of the chat show each revision of a reply.
create or replace function app.messages_wake()
  returns trigger
  language plpgsql
as $$
begin
  if new.role = 'assistant' then
    perform app.wake('runner_chat', new.organization_id || ' ' || new.chat_id);
  end if;
  return null;
end
$$;

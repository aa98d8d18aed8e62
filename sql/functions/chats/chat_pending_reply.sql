-- The id of the reply in progress in a chat, or null. No new one can appear while the chat is locked.
create or replace function app.chat_pending_reply(p_organization_id uuid, p_chat_id uuid)
  returns uuid
  language plpgsql
as $$
begin
  return (select id from app.messages
    where organization_id = p_organization_id and chat_id = p_chat_id and role = 'assistant'
      and status in ('pending', 'cancelling'));
end
$$;

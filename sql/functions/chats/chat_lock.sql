-- Locks and returns the chat. A chat whose removal has begun does not exist any more. Codes: 404 chat_not_found.
create or replace function app.chat_lock(p_organization_id uuid, p_chat_id uuid)
  returns app.chats
  language plpgsql
as $$
declare
  c app.chats;
begin
  select * into c from app.chats where organization_id = p_organization_id and id = p_chat_id for no key update;
  if not found or c.removed_at is not null then
    perform app.fail(404, 'chat_not_found', 'Chat not found');
  end if;
  return c;
end
$$;

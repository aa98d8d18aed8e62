-- Archived, a chat is closed for those who follow it.
create or replace function app.chats_wake()
  returns trigger
  language plpgsql
as $$
begin
  perform app.wake('runner_chat', new.organization_id || ' ' || new.id);
  return null;
end
$$;

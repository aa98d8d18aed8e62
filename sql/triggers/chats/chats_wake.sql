-- A chat was archived, which ends its streams, or opened again.
create or replace function app.chats_wake()
  returns trigger
  language plpgsql
as $$
begin
  perform app.wake('runner_chat', new.organization_id || ' ' || new.id);
  return null;
end
$$;

-- Reply pending → cancelling (docs/interface.md 3.4). If its turn has not started, the claim ends, and → cancelled follows in
-- the revision after the returned one. If it has started, the lease stays until the worker reports or the lease ends.
-- Locks: run request → run → message. Returns {message}, in its revision with status cancelling.
-- Codes: 404 organization_not_found | message_not_found, 409 message_not_cancellable (any other status, also for a repeat).
create or replace function app.message_cancel(
  p_organization_id uuid, p_chat_id uuid, p_message_id uuid, p_actor jsonb)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  r app.run_requests;
  m app.messages;
begin
  perform app.actor_require(p_organization_id, p_actor);
  select * into r from app.run_requests
    where organization_id = p_organization_id and message_id = p_message_id for no key update;
  select * into m from app.messages where organization_id = p_organization_id and id = p_message_id;
  if not found or m.chat_id <> p_chat_id or not exists (
    select 1 from app.chats where organization_id = p_organization_id and id = p_chat_id and removed_at is null) then
    perform app.fail(404, 'message_not_found', 'Message not found');
  end if;
  if m.role <> 'assistant' or m.status <> 'pending' then
    perform app.fail(409, 'message_not_cancellable', format('The message is %s', m.status));
  end if;
  return jsonb_build_object('message', app.chat_turn_cancel(r));
end
$$;

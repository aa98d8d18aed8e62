-- Chat open → archived; a turn that no worker has started is cancelled (docs/interface.md 3.3). An archived chat stays
-- unchanged.
-- Locks: run request → chat → message. Returns {chat, messageId}, with the id of the cancelled reply or null.
-- Codes: 404 organization_not_found | chat_not_found, 409 onboarding_chat_immutable | chat_response_active (the turn has
-- started).
create or replace function app.chat_delete(p_organization_id uuid, p_chat_id uuid, p_actor jsonb)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  c app.chats;
  r app.run_requests;
  v_message_id uuid;
begin
  perform app.actor_require(p_organization_id, p_actor);
  -- Requests are locked before chats, so the request is found without a lock and compared below with the locked chat.
  v_message_id := app.chat_pending_reply(p_organization_id, p_chat_id);
  if v_message_id is not null then
    select * into r from app.run_requests
      where organization_id = p_organization_id and message_id = v_message_id for no key update;
  end if;
  c := app.chat_lock(p_organization_id, p_chat_id);
  if c.is_onboarding then
    perform app.fail(409, 'onboarding_chat_immutable', 'The onboarding chat is not deleted');
  end if;
  if c.status = 'archived' then
    return jsonb_build_object('chat', to_jsonb(c), 'messageId', null);
  end if;
  v_message_id := app.chat_pending_reply(p_organization_id, p_chat_id);
  if v_message_id is not null then
    if r.message_id is distinct from v_message_id then
      raise exception using errcode = '40001', message = 'another turn began meanwhile';
    end if;
    if r.state not in ('published', 'leased') then
      perform app.fail(409, 'chat_response_active', 'A reply is in progress in this chat');
    end if;
    perform app.chat_turn_cancel(r);
  end if;
  update app.chats
    set status = 'archived', archived_at = clock_timestamp(), updated_at = greatest(clock_timestamp(), updated_at)
    where organization_id = p_organization_id and id = c.id
    returning * into c;
  return jsonb_build_object('chat', to_jsonb(c), 'messageId', v_message_id);
end
$$;

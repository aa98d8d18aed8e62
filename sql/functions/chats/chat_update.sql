-- Changes title, status and settings by a merge patch; chat open ⇄ archived (docs/interface.md 3.3). A patch that changes
-- nothing succeeds. The onboarding chat cannot be changed. Locks: chat. Returns {chat}.
-- Codes: 400 validation_failed (a pinned task), 404 organization_not_found | chat_not_found, 409 onboarding_chat_immutable |
-- chat_response_active (archived while a reply is in progress).
create or replace function app.chat_update(p_organization_id uuid, p_chat_id uuid, p_patch jsonb, p_actor jsonb)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  c app.chats;
  n app.chats;
begin
  perform app.actor_require(p_organization_id, p_actor);
  c := app.chat_lock(p_organization_id, p_chat_id);
  if c.is_onboarding then
    perform app.fail(409, 'onboarding_chat_immutable', 'The onboarding chat is not changed');
  end if;
  n := c;
  if p_patch ? 'title' then n.title := p_patch ->> 'title'; end if;
  if p_patch ? 'status' then n.status := p_patch ->> 'status'; end if;
  if p_patch ? 'settings' then
    n.settings := app.chat_settings(p_organization_id, c.settings, p_patch -> 'settings');
  end if;
  if n.status <> c.status then
    if n.status = 'archived' and app.chat_pending_reply(p_organization_id, c.id) is not null then
      perform app.fail(409, 'chat_response_active', 'A reply is in progress in this chat');
    end if;
    n.archived_at := case n.status when 'archived' then clock_timestamp() end;
  end if;
  if n is not distinct from c then
    return jsonb_build_object('chat', to_jsonb(c));
  end if;
  update app.chats
    set title = n.title, status = n.status, settings = n.settings, archived_at = n.archived_at,
      updated_at = greatest(clock_timestamp(), updated_at)
    where organization_id = p_organization_id and id = c.id
    returning * into c;
  return jsonb_build_object('chat', to_jsonb(c));
end
$$;

-- Chat (none) → open. p_body: {title, settings?}, validated in shape. Returns {chat}.
-- Codes: 400 validation_failed (a pinned task), 404 organization_not_found.
create or replace function app.chat_create(p_organization_id uuid, p_body jsonb, p_actor jsonb)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_now timestamptz := clock_timestamp();
  c app.chats;
begin
  perform app.actor_require(p_organization_id, p_actor);
  insert into app.chats (organization_id, title, settings, last_message_at, created_at, updated_at)
    values (p_organization_id, p_body ->> 'title', app.chat_settings(p_organization_id, null, p_body -> 'settings'),
      v_now, v_now, v_now)
    returning * into c;
  return jsonb_build_object('chat', to_jsonb(c));
end
$$;

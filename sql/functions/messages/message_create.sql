-- Creates a user message (complete), its pending reply and the run request of the turn (docs/interface.md 4.4). p_body:
-- {author, parts: [{kind: text, text}], answers, attachmentIds}, validated in shape.
-- The request is published even while work dispatch is stopped; that of a suspended organization is not handed out.
-- Locks: profile (shared, so that disabling it finds this request) → chat → (commit) dispatch.
-- Returns {userMessage, assistantMessage}.
-- Codes: 400 validation_failed (answers, attachments, an empty message), 404 organization_not_found | chat_not_found, 409
-- onboarding_chat_immutable (the onboarding is over) | state_conflict (archived, no chat profile) | chat_turn_active.
create or replace function app.message_create(p_organization_id uuid, p_chat_id uuid, p_body jsonb, p_actor jsonb)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  p app.agent_profiles;
  c app.chats;
  m app.messages;
  v_user app.messages;
  v_reply app.messages;
  v_parts jsonb;
  v_issues jsonb;
  v_attached jsonb;
  v_at timestamptz;
begin
  for v_try in 1 .. 2 loop
    -- Twice: the profile may have been disabled, and another one enabled, while this waited for the lock.
    select * into p from app.agent_profiles
      where organization_id = p_organization_id and kind = 'chat' and status = 'enabled' and deleted_at is null
      order by created_at, id limit 1 for share;
    exit when found;
  end loop;
  perform app.actor_require(p_organization_id, p_actor);
  c := app.chat_lock(p_organization_id, p_chat_id);
  -- The completion of the onboarding locks the chat: whoever waited for that lock sees it completed.
  if c.is_onboarding and (
      exists (select 1 from app.organizations where id = p_organization_id and onboarded_at is not null)
      or exists (select 1 from app.onboardings where organization_id = p_organization_id and status = 'completed')) then
    perform app.fail(409, 'onboarding_chat_immutable', 'Onboarding is over, and so is its chat');
  end if;
  if c.status <> 'open' then
    perform app.fail(409, 'state_conflict', 'The chat is archived; set its status to open to go on with it');
  end if;
  if app.chat_pending_reply(p_organization_id, c.id) is not null then
    perform app.fail(409, 'chat_turn_active', 'The reply to the last message is still in progress');
  end if;
  select * into m from app.messages
    where organization_id = p_organization_id and chat_id = c.id order by created_at desc, id desc limit 1;

  select a.parts, a.issues into v_parts, v_issues
    from app.message_answers(p_organization_id, c.id, c.is_onboarding, m, coalesce(p_body -> 'answers', '[]')) a;
  select coalesce(jsonb_agg(jsonb_build_object('id', app.uuid_v7(), 'kind', 'attachment', 'attachmentId', a.id,
        'fileName', a.file_name, 'mediaType', a.media_type, 'sizeBytes', a.size_bytes) order by i.place)
      filter (where a.id is not null), '[]'),
    v_issues || coalesce(jsonb_agg(app.issue(format('attachmentIds.%s', i.place - 1), 'unknown_attachment',
        'names no attachment of this chat') -> 0 order by i.place) filter (where a.id is null), '[]')
    into v_attached, v_issues
    from jsonb_array_elements_text(coalesce(p_body -> 'attachmentIds', '[]')) with ordinality i(id, place)
    left join app.chat_attachments a
      on a.organization_id = p_organization_id and a.chat_id = c.id and a.id = i.id::uuid;
  v_parts := v_parts || app.message_parts('parts', '[]', coalesce(p_body -> 'parts', '[]')) || v_attached;
  if v_issues <> '[]' then
    perform app.fail(400, 'validation_failed', 'The message does not fit what the chat waits for', v_issues);
  end if;
  if v_parts = '[]' then
    perform app.fail(400, 'validation_failed', 'The message says nothing',
      app.issue('parts', 'empty', 'a message needs a part or an answer'));
  end if;
  if p.id is null then
    perform app.fail(409, 'state_conflict', 'The organization has no enabled profile of kind chat: '
      || 'POST /organizations/{organizationId}/agent-profiles/provision makes that of the template catalog');
  end if;

  v_at := greatest(clock_timestamp(), m.created_at + interval '1 microsecond');
  insert into app.messages (organization_id, chat_id, role, status, author, parts, search_text, completed_at,
      created_at, updated_at)
    values (p_organization_id, c.id, 'user', 'complete', nullif(p_body -> 'author', 'null'), v_parts,
      app.parts_text(v_parts), v_at, v_at, v_at)
    returning * into v_user;
  perform app.message_chunks_begin(v_user);
  insert into app.messages (organization_id, chat_id, reply_to_message_id, role, status, author, parts,
      created_at, updated_at)
    values (p_organization_id, c.id, v_user.id, 'assistant', 'pending',
      jsonb_build_object('kind', 'agent', 'displayName', p.name), '[]',
      v_at + interval '1 microsecond', v_at + interval '1 microsecond')
    returning * into v_reply;
  insert into app.run_requests (organization_id, kind, chat_id, message_id, agent_profile_id, mode, state, published_at)
    values (p_organization_id, 'chat', c.id, v_reply.id, p.id, 'execute', 'published', clock_timestamp());
  update app.chats set last_message_at = v_at, updated_at = greatest(v_at, updated_at)
    where organization_id = p_organization_id and id = c.id;
  return jsonb_build_object('userMessage', app.message_row(v_user), 'assistantMessage', app.message_row(v_reply));
end
$$;

-- What is new in chats of one organization for clients that follow them, each with the revision of the assistant message that
-- the client has (null: none): [{chatId, closed, head, headOrder, earlier, earlierOrder}].
-- head: the latest assistant message as a row, null if the client has it. earlier: the last revision of the client's message if
-- a later message exists. The orders are creation times in microseconds. A chat that is gone (removed, or its organization
-- deleted) is closed. Chats without news are left out.
-- One statement, planned once per connection: planning it took longer than running it.
create or replace function app.chat_heads(
  p_organization_id uuid, p_chat_ids uuid[], p_message_ids uuid[], p_revisions integer[])
  returns jsonb
  language plpgsql security definer
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
begin
  return (
    select coalesce(jsonb_agg(jsonb_build_object('chatId', k.chat_id, 'closed', c.status is distinct from 'open',
        'head', case when ((h.m).id, (h.m).revision) is distinct from (k.message_id, k.revision)
          then app.message_row(h.m) end,
        'headOrder', (extract(epoch from (h.m).created_at) * 1000000)::bigint,
        'earlier', app.message_row(e), 'earlierOrder', (extract(epoch from e.created_at) * 1000000)::bigint)), '[]')
      from unnest(p_chat_ids, p_message_ids, p_revisions) k(chat_id, message_id, revision)
      left join app.organizations o on o.id = p_organization_id and o.deleted_at is null
      left join app.chats c on c.organization_id = o.id and c.id = k.chat_id and c.removed_at is null
      left join lateral (
        select m from app.messages m
          where m.organization_id = c.organization_id and m.chat_id = c.id and m.role = 'assistant'
          order by m.created_at desc, m.id desc limit 1) h on true
      left join app.messages e on e.organization_id = c.organization_id and e.id = k.message_id
        and e.id <> (h.m).id and e.revision <> k.revision
      where c.status is distinct from 'open'
        or ((h.m).id, (h.m).revision) is distinct from (k.message_id, k.revision));
end
$$;

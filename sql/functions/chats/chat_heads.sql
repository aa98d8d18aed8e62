-- What streams show, for chats of one organization: [{chatId, status, message}] with the latest assistant message as a
-- row, or null where there is none yet. Chats that are gone (removed, or their organization is deleted) are left out.
create or replace function app.chat_heads(p_organization_id uuid, p_chat_ids uuid[])
  returns jsonb
  language plpgsql security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
begin
  return (
    select coalesce(jsonb_agg(jsonb_build_object('chatId', c.id, 'status', c.status, 'message', h.message)), '[]')
      from app.organizations o
      join app.chats c on c.organization_id = o.id and c.id = any (p_chat_ids) and c.removed_at is null
      left join lateral (
        select app.message_row(m) as message from app.messages m
          where m.organization_id = c.organization_id and m.chat_id = c.id and m.role = 'assistant'
          order by m.created_at desc, m.id desc limit 1) h on true
      where o.id = p_organization_id and o.deleted_at is null);
end
$$;

alter function app.chat_heads owner to runner_scoped;
revoke all on function app.chat_heads from public;
grant execute on function app.chat_heads to runner_api;

-- What the holder of a chat turn replies to: the chat, and its latest messages up to the one that gets the reply, oldest first.
-- At most p_limit messages and p_max_bytes of parts, but always the last one. earlier: there are more messages before these.
-- Returns {chat, messageId, userMessageId, messages, earlier}. Locks nothing. Codes: 409 run_lease_expired with lease_lost.
create or replace function app.run_conversation(
  p_organization_id uuid, p_run_id uuid, p_lease_token text, p_limit integer, p_max_bytes integer)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  r app.run_requests;
  u app.messages;
  v_messages jsonb;
  v_count integer;
  v_last integer;
begin
  select q.* into r from app.run_requests q
    where q.organization_id = p_organization_id
      and q.id = (select k.run_request_id from app.runs k where k.organization_id = p_organization_id and k.id = p_run_id);
  if r.run_id is distinct from p_run_id or r.kind <> 'chat' or r.state <> 'started'
     or not app.lease_is_current(r, p_lease_token) then
    perform app.lease_refuse('lease_lost');
  end if;
  select q.* into u from app.messages a
    join app.messages q on q.organization_id = a.organization_id and q.id = a.reply_to_message_id
    where a.organization_id = p_organization_id and a.id = r.message_id;
  with latest as (
    select k.row, (k.row).created_at, row_number() over w as place, sum(octet_length((k.row).parts::text)) over w as bytes
      from (select m as row from app.messages m
              where m.organization_id = p_organization_id and m.chat_id = r.chat_id
                and (m.created_at, m.id) <= (u.created_at, u.id)
              order by m.created_at desc, m.id desc limit p_limit + 1) k
      window w as (order by (k.row).created_at desc, (k.row).id desc)
  )
  select jsonb_agg(app.message_row(l.row) order by l.created_at)
      filter (where l.place = 1 or l.place <= p_limit and l.bytes <= p_max_bytes),
    count(*) filter (where l.place = 1 or l.place <= p_limit and l.bytes <= p_max_bytes), count(*)
    into v_messages, v_count, v_last from latest l;
  return jsonb_build_object(
    'chat', (select to_jsonb(c) from app.chats c where c.organization_id = p_organization_id and c.id = r.chat_id),
    'messageId', r.message_id, 'userMessageId', u.id, 'messages', v_messages, 'earlier', v_last > v_count);
end
$$;

-- Removes up to p_limit rows of a chat that was archived 30 days ago, in a transaction per call. The first call hides the chat.
-- The cleanup job calls it until it returns {done: true}; a crash between two calls loses nothing. The chat's own row stays
-- until p_forget, after its objects are deleted, because the job finds the chat by it.
-- Runs that had an attachment as input stay, and list it as missing. {done: true, gone: true}: the chat is already removed, or
-- not due.
-- Locks: chat → attachments.
create or replace function app.chat_purge(p_organization_id uuid, p_chat_id uuid, p_limit integer, p_forget boolean)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_table text;
  v_removed integer;
  c app.chats;
begin
  select * into c from app.chats where organization_id = p_organization_id and id = p_chat_id for no key update;
  if not found then
    return '{"done": true, "gone": true}';
  end if;
  if c.removed_at is null then
    -- A cancelled turn may still hold capacity: its lease has to end first.
    if c.status <> 'archived' or c.archived_at > clock_timestamp() - interval '30 days' or exists (
        select 1 from app.messages m
          join app.run_requests r on r.organization_id = m.organization_id and r.message_id = m.id
          where m.organization_id = p_organization_id and m.chat_id = c.id
            and r.state in ('published', 'leased', 'started')) then
      return '{"done": true, "gone": true}';
    end if;
    update app.chats set removed_at = clock_timestamp(), updated_at = clock_timestamp()
      where organization_id = p_organization_id and id = c.id;
  end if;
  foreach v_table in array array['chat_attachments', 'message_chunks', 'messages'] loop
    execute format('delete from app.%1$I where ctid = any (array(
      select ctid from app.%1$I where organization_id = $1 and chat_id = $2 limit $3))', v_table)
      using p_organization_id, c.id, p_limit;
    get diagnostics v_removed = row_count;
    if v_removed > 0 then
      return jsonb_build_object('done', false, 'gone', false);
    end if;
  end loop;
  -- After the attachments: a start that found one has kept its row locked until its input was committed.
  update app.run_inputs set sha256 = null, storage_key = null, chat_id = null where ctid = any (array(
    select ctid from app.run_inputs where organization_id = p_organization_id and chat_id = c.id limit p_limit));
  get diagnostics v_removed = row_count;
  if v_removed > 0 then
    return jsonb_build_object('done', false, 'gone', false);
  end if;
  if p_forget then
    delete from app.chats where organization_id = p_organization_id and id = c.id;
  end if;
  return jsonb_build_object('done', true, 'gone', p_forget);
end
$$;

-- Message pending → p_status; cancelling → cancelled, whatever p_status is. A final message stays unchanged. p_parts null: the
-- parts written last stay. However it ends, it shows the actions that its turn proposed; one that is cancelled or fails cancels them.
-- The caller has locked the request. Returns the message, or null.
create or replace function app.message_end(
  p_organization_id uuid, p_message_id uuid, p_status text, p_error jsonb, p_parts jsonb default null)
  returns app.messages
  language plpgsql
as $$
declare
  m app.messages;
  v_now timestamptz := clock_timestamp();
begin
  update app.messages
    set status = case status when 'cancelling' then 'cancelled' else p_status end,
      error = case when status <> 'cancelling' and p_status = 'failed' then p_error end,
      parts = coalesce(p_parts, parts)
        || app.turn_action_parts(p_organization_id, p_message_id, coalesce(p_parts, parts)),
      search_text = app.parts_text(coalesce(p_parts, parts)),
      revision = revision + 1, write_hash = null,
      completed_at = greatest(v_now, updated_at), updated_at = greatest(v_now, updated_at)
    where organization_id = p_organization_id and id = p_message_id and completed_at is null
    returning * into m;
  if found then
    if m.status in ('failed', 'cancelled') then
      perform app.actions_cancel_of_message(p_organization_id, m.id);
    end if;
    perform app.message_chunks_begin(m);
  end if;
  return m;
end
$$;

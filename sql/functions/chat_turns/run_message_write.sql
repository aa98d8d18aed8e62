-- Writes the next revision of a pending reply: p_parts replaces its parts, or p_append is appended to its last text part.
-- p_base_revision: the revision that the writer has seen. A repeat returns the same response. After a cancel nothing is
-- written, and the status is cancelling.
-- Locks: run request → message. Returns {revision, status, chatId, messageId}.
-- Codes: 400 validation_failed (parts), 409 run_lease_expired with lease_lost | differs (another revision is current).
create or replace function app.run_message_write(
  p_organization_id uuid, p_run_id uuid, p_lease_token text, p_base_revision integer, p_parts jsonb, p_append text)
  returns jsonb
  language plpgsql security definer
  set plan_cache_mode = force_generic_plan
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_hash text := encode(sha256(convert_to(coalesce('p' || p_parts::text, 'a' || p_append), 'UTF8')), 'hex');
  v_last integer;
  v_parts jsonb;
  r app.run_requests;
  m app.messages;
begin
  r := app.run_request_lock(p_organization_id, p_run_id);
  if r.run_id is distinct from p_run_id or r.kind <> 'chat' or r.state <> 'started'
     or not app.lease_is_current(r, p_lease_token) then
    perform app.lease_refuse('lease_lost');
  end if;
  select * into m from app.messages where organization_id = p_organization_id and id = r.message_id;
  if r.cancel_requested_at is null and (m.revision - 1 <> p_base_revision or m.write_hash is distinct from v_hash) then
    if m.revision <> p_base_revision then
      perform app.lease_refuse('differs');
    end if;
    v_last := jsonb_array_length(m.parts) - 1;
    v_parts := app.message_parts('parts', m.parts, case
      when p_parts is not null then app.turn_parts(r, 'parts', p_parts)
      when m.parts #>> array[v_last::text, 'kind'] = 'text' then jsonb_set(m.parts, array[v_last::text, 'text'],
        to_jsonb((m.parts #>> array[v_last::text, 'text']) || p_append))
      else m.parts || jsonb_build_array(jsonb_build_object('kind', 'text', 'text', p_append)) end);
    update app.messages
      set parts = v_parts, revision = revision + 1, write_hash = v_hash,
        updated_at = greatest(clock_timestamp(), updated_at)
      where organization_id = p_organization_id and id = m.id
      returning * into m;
  end if;
  return jsonb_build_object('revision', m.revision, 'status',
    case when r.cancel_requested_at is null then m.status else 'cancelling' end, 'chatId', m.chat_id, 'messageId', m.id);
end
$$;

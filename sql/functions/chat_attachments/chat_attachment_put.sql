-- Records an uploaded attachment. p_storage_key null: only checks, before the upload, and returns what is already recorded. The
-- same id with the same bytes again returns the first record with `stored: false`, and the caller deletes its bytes.
-- Locks: chat. Returns {attachment, stored, storageKey}; storageKey: where the bytes of the record are.
-- Codes: 404 organization_not_found | chat_not_found, 409 attachment_not_allowed (archived or onboarding chat, other bytes
-- under this id, 1,000 attachments).
create or replace function app.chat_attachment_put(
  p_organization_id uuid, p_chat_id uuid, p_attachment_id uuid, p_file_name text, p_media_type text,
  p_size_bytes bigint, p_sha256 text, p_storage_key text, p_actor jsonb)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  c app.chats;
  a app.chat_attachments;
begin
  perform app.actor_require(p_organization_id, p_actor);
  c := app.chat_lock(p_organization_id, p_chat_id);
  if c.is_onboarding or c.status <> 'open' then
    perform app.fail(409, 'attachment_not_allowed', 'Only open chats, and not the onboarding chat, take attachments');
  end if;
  select * into a from app.chat_attachments
    where organization_id = p_organization_id and chat_id = c.id and id = p_attachment_id;
  if found then
    if p_storage_key is not null and a.sha256 <> p_sha256 then
      perform app.fail(409, 'attachment_not_allowed', 'Other bytes have this attachment id');
    end if;
    return jsonb_build_object('attachment', to_jsonb(a), 'stored', false, 'storageKey', a.storage_key);
  end if;
  if (select count(*) from app.chat_attachments
      where organization_id = p_organization_id and chat_id = c.id) >= 1000 then
    perform app.fail(409, 'attachment_not_allowed', 'A chat holds at most 1000 attachments');
  end if;
  if p_storage_key is null then
    return jsonb_build_object('attachment', null, 'stored', false, 'storageKey', null);
  end if;
  insert into app.chat_attachments
      (organization_id, chat_id, id, file_name, media_type, size_bytes, sha256, storage_key, created_at)
    values (p_organization_id, c.id, p_attachment_id, p_file_name, p_media_type, p_size_bytes, p_sha256, p_storage_key,
      clock_timestamp())
    returning * into a;
  return jsonb_build_object('attachment', to_jsonb(a), 'stored', true, 'storageKey', a.storage_key);
end
$$;

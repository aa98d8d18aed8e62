-- File of an invocation (none) | begun → stored, with bytes that the caller has compared with p_file: {name, contentType, sizeBytes,
-- sha256}. p_storage_key: where they lie; null: nothing is stored yet, and this says whether it may be. p_begun: only one that was
-- begun, by its URL. A file that is stored stays as it is: the caller deletes its own bytes, and those of the upload.
-- Returns {file, stored, uploadKey}; file null: it is not stored yet.
-- Locks: integration (shared) → the files of the execution → file.
-- Codes: 401 agent_unauthorized, 404 not_found, 409 state_conflict (differs, too_many_files; stale_epoch, or why it is not available).
create or replace function app.action_file_store(
  p_organization_id uuid, p_token_hash text, p_integration_id uuid, p_invocation_id text, p_file_id uuid, p_begun boolean,
  p_file jsonb, p_storage_key text)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_stored boolean := false;
  v_run_id uuid;
  f app.action_invocation_files;
begin
  perform 1 from app.integrations where organization_id = p_organization_id and id = p_integration_id for key share;
  v_run_id := (app.integration_capability_check(p_organization_id, p_token_hash, p_integration_id, 'cli')
    #>> '{execution,runId}')::uuid;
  f := app.action_file_lock(p_organization_id, v_run_id, p_integration_id, p_invocation_id, p_file_id, p_file);
  if p_begun and f.upload_key is null then
    perform app.fail(404, 'not_found', 'No upload of a file with this id was begun in this invocation');
  end if;
  if f.id is null then
    perform app.action_files_limit(p_organization_id, v_run_id);
    if p_storage_key is not null then
      insert into app.action_invocation_files (organization_id, run_id, integration_id, invocation_id, id, name, content_type,
          size_bytes, sha256, storage_key, stored_at)
        values (p_organization_id, v_run_id, p_integration_id, p_invocation_id, p_file_id, p_file ->> 'name',
          p_file ->> 'contentType', (p_file ->> 'sizeBytes')::bigint, p_file ->> 'sha256', p_storage_key, clock_timestamp())
        on conflict on constraint action_invocation_files_pkey do nothing;
      v_stored := found;
      f := app.action_file_lock(p_organization_id, v_run_id, p_integration_id, p_invocation_id, p_file_id, p_file);
    end if;
  end if;
  if f.stored_at is null and p_storage_key is not null then
    update app.action_invocation_files k
      set storage_key = p_storage_key, stored_at = clock_timestamp()
      where k.organization_id = p_organization_id and k.run_id = v_run_id and k.integration_id = p_integration_id
        and k.invocation_id = p_invocation_id and k.id = p_file_id
      returning * into f;
    v_stored := true;
  end if;
  return jsonb_build_object('file', case when f.stored_at is not null then app.action_file_record(f) end, 'stored', v_stored,
    'uploadKey', f.upload_key);
end
$$;

-- File of an invocation (none) → begun: an upload by URL is awaited. p_file: {name, contentType, sizeBytes, sha256}, as declared.
-- p_upload_key: where it goes, if it was not begun before. p_seconds: how long the URL lasts. The same again, also of a file that is
-- stored, keeps the place and begins the time anew.
-- Returns {uploadKey}. Locks: integration (shared) → the files of the execution → file.
-- Codes: 401 agent_unauthorized, 409 state_conflict (differs, too_many_files; stale_epoch, or why it is not available).
create or replace function app.action_file_begin(
  p_organization_id uuid, p_token_hash text, p_integration_id uuid, p_invocation_id text, p_file_id uuid, p_file jsonb,
  p_upload_key text, p_seconds integer)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_ends_at timestamptz;
  v_run_id uuid;
  f app.action_invocation_files;
begin
  -- It may not be deleted between the check and the row that names it.
  perform 1 from app.integrations where organization_id = p_organization_id and id = p_integration_id for key share;
  v_run_id := (app.integration_capability_check(p_organization_id, p_token_hash, p_integration_id, 'cli')
    #>> '{execution,runId}')::uuid;
  f := app.action_file_lock(p_organization_id, v_run_id, p_integration_id, p_invocation_id, p_file_id, p_file);
  v_ends_at := clock_timestamp() + make_interval(secs => p_seconds);
  if f.id is null then
    perform app.action_files_limit(p_organization_id, v_run_id);
    insert into app.action_invocation_files (organization_id, run_id, integration_id, invocation_id, id, name, content_type,
        size_bytes, sha256, upload_key, upload_expires_at)
      values (p_organization_id, v_run_id, p_integration_id, p_invocation_id, p_file_id, p_file ->> 'name',
        p_file ->> 'contentType', (p_file ->> 'sizeBytes')::bigint, p_file ->> 'sha256', p_upload_key, v_ends_at)
      on conflict on constraint action_invocation_files_pkey do nothing;
    -- Somebody else may have been faster.
    f := app.action_file_lock(p_organization_id, v_run_id, p_integration_id, p_invocation_id, p_file_id, p_file);
  end if;
  update app.action_invocation_files k
    set upload_key = coalesce(k.upload_key, p_upload_key), upload_expires_at = v_ends_at,
      remove_at = v_ends_at + interval '1 day'
    where k.organization_id = p_organization_id and k.run_id = v_run_id and k.integration_id = p_integration_id
      and k.invocation_id = p_invocation_id and k.id = p_file_id
    returning * into f;
  return jsonb_build_object('uploadKey', f.upload_key);
end
$$;

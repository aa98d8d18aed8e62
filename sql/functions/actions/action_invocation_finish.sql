-- Invocation of a read begun → responded | failed | none. p_outcome: {response} as JSON text | {responseKey}, where it lies in the object
-- storage; either with files, those that it brought: [{fileId, name, contentType, sizeBytes, sha256, storageKey}] | {failure: {status,
-- code, message, issues}}, for those who wait: another call begins it anew | {}: its arguments were refused, and nothing is bound.
-- Whoever has lost the lease changes nothing. Returns {finished}. Locks: invocation. Codes: none.
create or replace function app.action_invocation_finish(
  p_organization_id uuid, p_run_id uuid, p_integration_id uuid, p_invocation_id text, p_lease_id uuid, p_outcome jsonb)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_finished boolean;
begin
  if p_outcome = '{}' then
    delete from app.action_invocations
      where organization_id = p_organization_id and run_id = p_run_id and integration_id = p_integration_id
        and invocation_id = p_invocation_id and lease_id = p_lease_id and lease_expires_at is not null;
  else
    update app.action_invocations
      set lease_expires_at = null, response = p_outcome ->> 'response', response_key = p_outcome ->> 'responseKey',
        failure = p_outcome -> 'failure'
      where organization_id = p_organization_id and run_id = p_run_id and integration_id = p_integration_id
        and invocation_id = p_invocation_id and lease_id = p_lease_id and lease_expires_at is not null;
  end if;
  v_finished := found;
  if v_finished and p_outcome ? 'files' then
    insert into app.action_invocation_files (organization_id, run_id, integration_id, invocation_id, id, name, content_type,
        size_bytes, sha256, storage_key, stored_at)
      select p_organization_id, p_run_id, p_integration_id, p_invocation_id, f."fileId", f.name, f."contentType", f."sizeBytes",
          f.sha256, f."storageKey", clock_timestamp()
        from jsonb_to_recordset(p_outcome -> 'files')
          f("fileId" uuid, name text, "contentType" text, "sizeBytes" bigint, sha256 text, "storageKey" text);
  end if;
  return jsonb_build_object('finished', v_finished);
end
$$;

-- Stored files of an invocation, with where their bytes lie: [{fileId, name, contentType, sizeBytes, sha256, storageKey}], in the order
-- of p_file_ids. Those of other invocations are not there. Locks: none.
-- Codes: 401 agent_unauthorized, 404 not_found, 409 state_conflict (stale_epoch, or why it is not available).
create or replace function app.action_files_find(
  p_organization_id uuid, p_token_hash text, p_integration_id uuid, p_invocation_id text, p_file_ids uuid[])
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_run_id uuid;
  v_files jsonb;
begin
  v_run_id := (app.integration_capability_check(p_organization_id, p_token_hash, p_integration_id, 'cli')
    #>> '{execution,runId}')::uuid;
  select coalesce(jsonb_agg(app.action_file_record(f) || jsonb_build_object('storageKey', f.storage_key) order by k.place), '[]')
    into v_files
    from unnest(p_file_ids) with ordinality k(id, place)
    join app.action_invocation_files f on f.organization_id = p_organization_id and f.run_id = v_run_id
      and f.integration_id = p_integration_id and f.invocation_id = p_invocation_id and f.id = k.id
    where f.stored_at is not null;
  if jsonb_array_length(v_files) < cardinality(p_file_ids) then
    perform app.fail(404, 'not_found', 'This invocation has no stored file with this id');
  end if;
  return v_files;
end
$$;

-- Records a stored output file of a started run; the same path again replaces it. p_storage_key null: only checks, before the
-- upload. p_layout_key: the path as file systems without case or normalization see it.
-- Returns {output, replaced}; replaced: the storage key of bytes that no row names any more, or null.
-- Locks: run request. Codes: 400 validation_failed (too_many_files, layout_conflict, output_of_kind), 409 run_lease_expired
-- with lease_lost.
create or replace function app.run_output_record(
  p_organization_id uuid, p_run_id uuid, p_lease_token text, p_path text, p_layout_key text, p_storage_key text,
  p_size bigint, p_sha256 text, p_media_type text)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  r app.run_requests;
  o app.run_outputs;
  v_replaced text;
  v_other text;
begin
  r := app.run_request_lock(p_organization_id, p_run_id);
  if r.run_id is distinct from p_run_id or r.state <> 'started' or not app.lease_is_current(r, p_lease_token) then
    perform app.lease_refuse('lease_lost');
  end if;
  if r.kind <> 'task' then
    -- Purging a chat removes its runs, and then no row would name these bytes.
    perform app.fail(400, 'validation_failed', 'Chat turns store no output files',
      app.issue('runId', 'output_of_kind', 'is the run of a chat turn'));
  end if;
  select storage_key into v_replaced from app.run_outputs
    where organization_id = p_organization_id and run_id = p_run_id and path = p_path;
  if not found and (select count(*) from app.run_outputs
                    where organization_id = p_organization_id and run_id = p_run_id) >= 1000 then
    perform app.fail(400, 'validation_failed', 'A run stores at most 1000 output files',
      app.issue('path', 'too_many_files', 'the run has 1000 output files'));
  end if;
  select path into v_other from app.run_outputs
    where organization_id = p_organization_id and run_id = p_run_id and path <> p_path
      and (layout_key = p_layout_key or starts_with(layout_key, p_layout_key || '/')
        or starts_with(p_layout_key, layout_key || '/'))
    limit 1;
  if found then
    perform app.fail(400, 'validation_failed', 'The run has stored a file beside which this one cannot be laid out',
      app.issue('path', 'layout_conflict', format('cannot be laid out beside %s', v_other)));
  end if;
  if p_storage_key is null then
    return jsonb_build_object('output', null, 'replaced', null);
  end if;
  insert into app.run_outputs (organization_id, run_id, path, layout_key, storage_key, size, sha256, media_type)
    values (p_organization_id, p_run_id, p_path, p_layout_key, p_storage_key, p_size, p_sha256, p_media_type)
    on conflict (organization_id, run_id, path) do update
      set storage_key = excluded.storage_key, size = excluded.size, sha256 = excluded.sha256,
        media_type = excluded.media_type, created_at = now()
    returning * into o;
  return jsonb_build_object('output', to_jsonb(o), 'replaced', v_replaced);
end
$$;

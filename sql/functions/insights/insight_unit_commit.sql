-- Unit leased → committed: what it has collected, with the cursor behind it. p_result: {pages, records, bytes, changed, cursor, round,
-- done, nextDueAt, coverage, segments: [{month, objectKey, rowCount, sizeBytes, sha256, minAt, maxAt, staged}], publishStaged,
-- dropStaged, error?, retryNotBefore?}. Segments are published, as one revision; staged ones wait until a unit of their round says
-- publishStaged, or one of their mode dropStaged.
-- done: the round is over, and the next one is due at nextDueAt (null: there is none); else it goes on at once, or when error
-- and retryNotBefore say. coverage: all that is known of the source, with what the unit has found.
-- A unit that was claimed for another generation changes nothing: → discarded, and its files are left for the clean-up. A repeat changes
-- nothing. Returns {committed, revision}.
-- Locks: as insight_unit_lock → head. Codes: 409 state_conflict (lease_taken).
create or replace function app.insight_unit_commit(p_organization_id uuid, p_unit_id uuid, p_fence bigint, p_result jsonb)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  u app.insight_units := app.insight_unit_lock(p_organization_id, p_unit_id, p_fence);
  v_now constant timestamptz := clock_timestamp();
  v_done constant boolean := (p_result ->> 'done')::boolean;
  v_publish_staged constant boolean := coalesce((p_result ->> 'publishStaged')::boolean, false);
  v_error constant jsonb := nullif(p_result -> 'error', 'null') - 'isOurs';
  v_counts constant integer := (not coalesce((p_result -> 'error' ->> 'isOurs')::boolean, false))::integer;
  v_retry constant timestamptz := (p_result ->> 'retryNotBefore')::timestamptz;
  v_revision bigint;
  v_added integer;
  v_current text;
  s app.insight_sources;
begin
  if u.state <> 'leased' then
    return jsonb_build_object('committed', u.state = 'committed', 'revision', u.revision);
  end if;
  select * into s from app.insight_sources where organization_id = p_organization_id and id = u.source_id;
  select app.insight_generation(i, o.authorization_epoch, s.adapter_version, s.schema_version) into v_current
    from app.organizations o
    join app.integrations i on i.organization_id = o.id and i.id = u.integration_id
    where o.id = p_organization_id and s.in_scope and s.integration_id = i.id;
  if v_current is distinct from u.generation_digest then
    perform app.insight_unit_end(u, 'discarded');
    perform app.insight_connector_settle(p_organization_id, u.integration_id);
    return '{"committed": false, "revision": null}';
  end if;

  select count(*) filter (where v_publish_staged or not (x.value ->> 'staged')::boolean) into v_added
    from jsonb_array_elements(p_result -> 'segments') x;
  if v_publish_staged then
    v_added := v_added + (select count(*) from app.insight_segments
      where organization_id = p_organization_id and source_id = s.id and staged);
  end if;
  if v_added > 0 then
    update app.insight_heads set revision = revision + 1, updated_at = v_now where organization_id = p_organization_id
      returning revision into v_revision;
    insert into app.insight_publications (organization_id, revision, source_id, unit_id, added, retired)
      values (p_organization_id, v_revision, s.id, u.id, v_added, 0);
  end if;
  if v_publish_staged then
    update app.insight_segments set staged = false, published_revision = v_revision
      where organization_id = p_organization_id and source_id = s.id and staged;
  end if;
  insert into app.insight_segments (organization_id, source_id, month, object_key, unit_id, row_count, size_bytes, sha256, min_at, max_at,
      schema_version, staged, published_revision)
    select p_organization_id, s.id, x.month, x."objectKey", u.id, x."rowCount", x."sizeBytes", x.sha256, x."minAt", x."maxAt",
        s.schema_version, x.staged and not v_publish_staged, case when not x.staged or v_publish_staged then v_revision end
      from jsonb_to_recordset(p_result -> 'segments') x(month text, "objectKey" text, "rowCount" integer, "sizeBytes" bigint,
        sha256 text, "minAt" timestamptz, "maxAt" timestamptz, staged boolean);
  if (p_result ->> 'dropStaged')::boolean then
    perform app.insight_staged_drop(p_organization_id, s.id, u.mode);
  end if;
  update app.insight_cursors
    set cursor = nullif(p_result -> 'cursor', 'null'), round = nullif(p_result -> 'round', 'null'),
      failure_count = case when v_error is null then 0 else failure_count + v_counts end,
      completed_at = case when v_done then v_now else completed_at end,
      due_at = case when v_done then (p_result ->> 'nextDueAt')::timestamptz
        when v_error is not null then greatest(v_now + app.insight_backoff(failure_count + v_counts), v_retry)
        else v_now end
    where organization_id = p_organization_id and source_id = s.id and mode = u.mode::text;
  update app.insight_sources
    set coverage = p_result -> 'coverage', last_completed_at = case when v_done then v_now else last_completed_at end,
      failure_count = case when v_error is null then 0 else failure_count + v_counts end,
      last_error = v_error || jsonb_build_object('at', v_now), updated_at = v_now
    where organization_id = p_organization_id and id = s.id;
  update app.insight_connectors set retry_not_before = v_retry
    where organization_id = p_organization_id and integration_id = u.integration_id;
  perform app.insight_unit_end(u, 'committed', p_result - 'revision' || jsonb_build_object('revision', v_revision, 'error', v_error));
  perform app.insight_connector_settle(p_organization_id, u.integration_id);
  return jsonb_build_object('committed', true, 'revision', v_revision);
end
$$;

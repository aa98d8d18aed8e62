-- Ends a compaction: what it has merged is retired, and its one file published, as one revision. p_result: {removed, segment: {objectKey,
-- rowCount, sizeBytes, sha256, minAt, maxAt, schemaVersion}, null where nothing is left}. removed: facts that are gone, and that it has
-- left out: only where it has read the whole month, since they keep older files from telling what was before.
-- Nothing is published where a file that it has merged was retired meanwhile, or where it has left out facts and the month has got
-- another file: its own is left for the clean-up. A repeat changes nothing. Returns {committed, revision}.
-- Locks: as insight_compaction_lock → head. Codes: 409 state_conflict (lease_taken).
create or replace function app.insight_compaction_commit(
  p_organization_id uuid, p_source_id uuid, p_month text, p_compaction_id uuid, p_fence bigint, p_result jsonb)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  k app.insight_compactions :=
    app.insight_compaction_lock(p_organization_id, p_source_id, p_month, p_compaction_id, p_fence);
  v_segments constant uuid[] := array(select x::uuid from jsonb_array_elements_text(k.segments) x);
  v_segment constant jsonb := nullif(p_result -> 'segment', 'null');
  v_now timestamptz;
  v_is_whole boolean;
  v_live integer;
  v_others integer;
  v_revision bigint;
begin
  if k.lease_expires_at is null then
    return jsonb_build_object('committed', k.revision is not null, 'revision', k.revision);
  end if;
  -- Nobody publishes or retires anything from here on.
  perform 1 from app.insight_heads where organization_id = p_organization_id for no key update;
  v_now := clock_timestamp();
  select count(*) filter (where g.id = any (v_segments)), count(*) filter (where g.id <> all (v_segments)) into v_live, v_others
    from app.insight_segments g
    where g.organization_id = p_organization_id and g.source_id = p_source_id and g.month = p_month and g.retired_at is null;
  v_is_whole := k.is_whole and v_others = 0;
  if v_live = cardinality(v_segments) and (v_is_whole or v_segment is not null and (p_result ->> 'removed')::integer = 0) then
    update app.insight_heads set revision = revision + 1, updated_at = v_now where organization_id = p_organization_id
      returning revision into v_revision;
    insert into app.insight_publications (organization_id, revision, source_id, added, retired)
      values (p_organization_id, v_revision, p_source_id, (v_segment is not null)::integer, v_live);
    update app.insight_segments set retired_revision = v_revision, retired_at = v_now
      where organization_id = p_organization_id and id = any (v_segments);
    insert into app.insight_segments (organization_id, source_id, month, object_key, unit_id, row_count, size_bytes, sha256, min_at,
        max_at, distinct_keys, schema_version, published_revision)
      select p_organization_id, p_source_id, p_month, x."objectKey", k.compaction_id, x."rowCount", x."sizeBytes", x.sha256, x."minAt",
          x."maxAt", v_is_whole, x."schemaVersion", v_revision
        from jsonb_to_record(v_segment) x("objectKey" text, "rowCount" integer, "sizeBytes" bigint, sha256 text, "minAt" timestamptz,
          "maxAt" timestamptz, "schemaVersion" integer)
        where v_segment is not null;
  end if;
  update app.insight_compactions
    set lease_expires_at = null, segments = '[]', revision = v_revision,
      failure_count = case when v_revision is null then failure_count else 0 end,
      last_error = case when v_revision is null then last_error end,
      compacted_at = case when v_revision is null then compacted_at else v_now end
    where organization_id = p_organization_id and source_id = p_source_id and month = p_month;
  return jsonb_build_object('committed', v_revision is not null, 'revision', v_revision);
end
$$;

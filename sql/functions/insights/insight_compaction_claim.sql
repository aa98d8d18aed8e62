-- Claims files of a month of a source, to be merged into one, for p_seconds. All of them where they keep p_limits {segments, files, bytes,
-- rows} and none is staged (whole: what is gone may go from the file as well), else the smallest, which are a part. With each failure in
-- a row the limits halve, so that what takes too long, or one file that is damaged, does not stop all the rest.
-- p_adapters: {provider: {dataset: {schema}}}, as this process knows them: it would lose the columns of a newer schema.
-- A lease that has ended is over, and counts as a failure.
-- Returns {claimed: true, compaction: {id, fence, leaseExpiresAt, isWhole, provider, dataset, schemaVersion, segments: [{id, objectKey,
-- rowCount, sizeBytes, sha256}]}} or {claimed: false, reason: gone | unknown | leased | waiting | nothing}.
-- Locks: organization (shared) → compaction. Codes: none.
create or replace function app.insight_compaction_claim(
  p_organization_id uuid, p_source_id uuid, p_month text, p_adapters jsonb, p_limits jsonb, p_seconds integer)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_id constant uuid := app.uuid_v7();
  v_now timestamptz;
  v_schema integer;
  v_newest_schema integer;
  v_files integer;
  v_part integer;
  v_least integer;
  v_staged boolean;
  v_segments uuid[];
  s app.insight_sources;
  k app.insight_compactions;
begin
  perform 1 from app.organizations where id = p_organization_id and deleted_at is null for share;
  if not found then
    return '{"claimed": false, "reason": "gone"}';
  end if;
  select * into s from app.insight_sources where organization_id = p_organization_id and id = p_source_id;
  if s.id is null then
    return '{"claimed": false, "reason": "gone"}';
  end if;
  v_schema := (p_adapters -> s.provider -> s.dataset ->> 'schema')::integer;
  if v_schema is null then
    return '{"claimed": false, "reason": "unknown"}';
  end if;
  select count(*) into v_files from app.insight_segments
    where organization_id = p_organization_id and source_id = s.id and month = p_month and not staged and retired_at is null;
  if v_files < (p_limits ->> 'segments')::integer then
    return '{"claimed": false, "reason": "nothing"}';
  end if;

  insert into app.insight_compactions (organization_id, source_id, month) values (p_organization_id, s.id, p_month)
    on conflict do nothing;
  select * into k from app.insight_compactions
    where organization_id = p_organization_id and source_id = s.id and month = p_month
    for no key update;
  v_now := clock_timestamp();
  if k.lease_expires_at > v_now then
    return '{"claimed": false, "reason": "leased"}';
  end if;
  if k.lease_expires_at is not null then
    perform app.insight_compaction_failed(k, '{"code": "lease_expired", "message": "It did not end in time"}', k.lease_expires_at);
    select * into k from app.insight_compactions
      where organization_id = p_organization_id and source_id = s.id and month = p_month;
  end if;
  if k.due_at > v_now then
    return '{"claimed": false, "reason": "waiting"}';
  end if;

  v_part := power(2, least(k.failure_count, 4));
  v_least := case when k.failure_count > 0 then 2 else greatest(2, (p_limits ->> 'segments')::integer / 2) end;
  with live as (
    select g.id, g.schema_version,
        row_number() over w as files, sum(g.row_count) over w as rows, sum(g.size_bytes) over w as bytes
      from app.insight_segments g
      where g.organization_id = p_organization_id and g.source_id = s.id and g.month = p_month and not g.staged
        and g.retired_at is null
      window w as (order by g.row_count, g.published_revision, g.id))
  select array_agg(l.id) filter (where l.files <= (p_limits ->> 'files')::integer / v_part
        and l.rows <= (p_limits ->> 'rows')::bigint / v_part and l.bytes <= (p_limits ->> 'bytes')::bigint / v_part),
      count(*), max(l.schema_version), exists (
        select from app.insight_segments g
          where g.organization_id = p_organization_id and g.source_id = s.id and g.month = p_month and g.staged)
    into v_segments, v_files, v_newest_schema, v_staged
    from live l;
  if v_newest_schema > v_schema then
    return '{"claimed": false, "reason": "unknown"}';
  elsif v_files < (p_limits ->> 'segments')::integer then
    return '{"claimed": false, "reason": "nothing"}';
  elsif coalesce(cardinality(v_segments), 0) < v_least then
    -- Files are so large that merging these would gain nothing.
    update app.insight_compactions set due_at = v_now + interval '1 hour', failure_count = 0
      where organization_id = p_organization_id and source_id = s.id and month = p_month;
    return '{"claimed": false, "reason": "nothing"}';
  end if;
  update app.insight_compactions
    set compaction_id = v_id, fence = fence + 1, lease_expires_at = v_now + make_interval(secs => p_seconds),
      segments = to_jsonb(v_segments), is_whole = cardinality(v_segments) = v_files and not v_staged, revision = null, due_at = null
    where organization_id = p_organization_id and source_id = s.id and month = p_month
    returning * into k;
  return jsonb_build_object('claimed', true, 'compaction', jsonb_build_object('id', v_id, 'fence', k.fence,
    'leaseExpiresAt', k.lease_expires_at, 'isWhole', k.is_whole, 'provider', s.provider, 'dataset', s.dataset,
    'schemaVersion', v_schema, 'segments', (
      select jsonb_agg(jsonb_build_object('id', g.id, 'objectKey', g.object_key, 'rowCount', g.row_count, 'sizeBytes', g.size_bytes,
          'sha256', g.sha256) order by g.published_revision, g.id)
        from app.insight_segments g where g.organization_id = p_organization_id and g.id = any (v_segments))));
end
$$;

-- What is published of a source now, or at p_revision, in the months from p_from to p_to (null: all of them): [{id, month, objectKey,
-- rowCount, sizeBytes, sha256, schemaVersion, distinctKeys}], the oldest first. Returns {revision, segments}. Locks: none.
create or replace function app.insight_segments_read(
  p_organization_id uuid, p_source_id uuid, p_from text default null, p_to text default null, p_revision bigint default null)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
begin
  return (
    with head as (
      select coalesce(p_revision, (select h.revision from app.insight_heads h where h.organization_id = p_organization_id), 0) as revision)
    select jsonb_build_object('revision', (select revision from head), 'segments', coalesce((
      select jsonb_agg(jsonb_build_object('id', g.id, 'month', g.month, 'objectKey', g.object_key, 'rowCount', g.row_count,
          'sizeBytes', g.size_bytes, 'sha256', g.sha256, 'schemaVersion', g.schema_version, 'distinctKeys', g.distinct_keys)
          order by g.month, g.published_revision, g.id)
        from app.insight_segments g, head
        where g.organization_id = p_organization_id and g.source_id = p_source_id
          and g.published_revision <= head.revision and (g.retired_revision is null or g.retired_revision > head.revision)
          and (p_from is null or g.month >= p_from) and (p_to is null or g.month <= p_to)), '[]')));
end
$$;

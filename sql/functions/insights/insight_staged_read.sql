-- What is staged of a source: [{month, objectKey, rowCount, sizeBytes, sha256}], the oldest month first. Returns {segments}. Locks: none.
create or replace function app.insight_staged_read(p_organization_id uuid, p_source_id uuid)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
begin
  return jsonb_build_object('segments', (
    select coalesce(jsonb_agg(jsonb_build_object('month', g.month, 'objectKey', g.object_key, 'rowCount', g.row_count,
        'sizeBytes', g.size_bytes, 'sha256', g.sha256) order by g.month, g.id), '[]')
      from app.insight_segments g
      where g.organization_id = p_organization_id and g.source_id = p_source_id and g.staged));
end
$$;

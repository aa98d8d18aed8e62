-- The artifact list of a result against what the run stored: what was stored decides size, digest and type, the worker only
-- says which files are the result. missing: issues for files that were never stored, or not as claimed. outputs: with their
-- storage keys, for the evaluation.
create or replace function app.run_artifacts(
  p_organization_id uuid, p_run_id uuid, p_artifacts jsonb, out artifacts jsonb, out missing jsonb, out outputs jsonb)
  language sql stable
as $$
  select coalesce(jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
        'kind', 'file', 'runId', p_run_id, 'path', o.path,
        'name', a.item ->> 'name',
        'uri', format('org://%s/runs/%s/outputs/%s', p_organization_id, p_run_id, app.uri_path(o.path)),
        'size', o.size, 'sha256', o.sha256, 'mediaType', o.media_type)) order by a.place)
      filter (where o.path is not null), '[]'),
    coalesce(jsonb_agg(jsonb_build_object('path', format('output.result.artifacts.%s.path', a.place - 1),
        'code', case when o.path is null then 'not_stored' else 'differs_from_stored' end,
        'message', case when o.path is null then 'no output with this path was stored for the run'
                        else format('%s bytes with SHA-256 %s are stored', o.size, o.sha256) end) order by a.place)
      filter (where o.path is null or o.size <> (a.item ->> 'size')::bigint or o.sha256 <> a.item ->> 'sha256'), '[]'),
    coalesce(jsonb_agg(jsonb_build_object('path', o.path, 'size', o.size, 'sha256', o.sha256,
        'mediaType', o.media_type, 'storageKey', o.storage_key) order by a.place)
      filter (where o.path is not null), '[]')
  from jsonb_array_elements(p_artifacts) with ordinality a(item, place)
  left join app.run_outputs o on o.organization_id = p_organization_id and o.run_id = p_run_id
    and o.path = a.item ->> 'path'
$$;

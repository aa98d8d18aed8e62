-- The evidence of a verdict as it is stored: files, with size and digest of what was stored. missing: an issue for each file
-- that is not a stored output of a run of this organization.
create or replace function app.outcome_evidence(
  p_organization_id uuid, p_evidence jsonb, out evidence jsonb, out missing jsonb)
  language sql stable
as $$
  select coalesce(jsonb_agg(case e.item ->> 'kind'
        when 'file' then jsonb_build_object('kind', 'file', 'runId', o.run_id, 'path', o.path,
          'uri', format('org://%s/runs/%s/outputs/%s', p_organization_id, o.run_id, app.uri_path(o.path)),
          'size', o.size, 'sha256', o.sha256, 'mediaType', o.media_type)
        else e.item end order by e.place), '[]'),
    coalesce(jsonb_agg(jsonb_build_object('path', format('outcome.evidence.%s.path', e.place - 1), 'code', 'not_stored',
        'message', 'no output with this path was stored for the run') order by e.place)
      filter (where e.item ->> 'kind' = 'file' and o.path is null), '[]')
  from jsonb_array_elements(p_evidence) with ordinality e(item, place)
  left join app.run_outputs o on e.item ->> 'kind' = 'file' and o.organization_id = p_organization_id
    and o.run_id = (e.item ->> 'runId')::uuid and o.path = e.item ->> 'path'
$$;

-- A stored output in the form in which evidence and artifacts return it; null where nothing is stored.
create or replace function app.output_evidence(o app.run_outputs)
  returns jsonb
  language sql stable
as $$
  select case when o.path is not null then jsonb_build_object('kind', 'file', 'runId', o.run_id, 'path', o.path,
    'uri', format('org://%s/runs/%s/outputs/%s', o.organization_id, o.run_id, app.uri_path(o.path)),
    'size', o.size, 'sha256', o.sha256, 'mediaType', o.media_type) end
$$;

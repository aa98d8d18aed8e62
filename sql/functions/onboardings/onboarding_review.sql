-- The review of an onboarding as of now: {sha256, summary, warnings}. The digest is that of the canonical JSON (RFC 8785) of
-- {summary, warnings}. The completion publishes exactly what the summary contains, of a page its `text`: confirming the digest
-- confirms all of it.
create or replace function app.onboarding_review(o app.onboardings)
  returns jsonb
  language plpgsql
as $$
declare
  v_summary jsonb;
  v_warnings jsonb := o.research_warnings;
begin
  v_summary := jsonb_build_object(
    'setup', o.setup,
    'integrations', o.integrations,
    -- usable instead of the status: for a reviewer it makes no difference that a source has been read since.
    'sources', (select coalesce(jsonb_agg(jsonb_build_object('id', s.id, 'kind', s.kind, 'fileName', s.file_name,
        'mediaType', s.media_type, 'sizeBytes', s.size_bytes, 'sha256', s.sha256, 'department', s.department,
        'usable', s.status <> 'failed') order by s.created_at, s.id), '[]')
      from app.context_sources s where s.organization_id = o.organization_id and s.origin = 'onboarding'),
    'evidence', (select coalesce(jsonb_agg(jsonb_build_object('id', s.id,
        'title', coalesce(s.title, s.provenance_urls ->> 0, s.file_name), 'urls', s.provenance_urls, 'sha256', s.sha256,
        'usable', s.status <> 'failed', 'excerpt', coalesce(s.excerpt, ''), 'text', coalesce(s.page_text, '')) order by s.created_at, s.id), '[]')
      from app.context_sources s where s.organization_id = o.organization_id and s.origin = 'research'),
    'findings', (select coalesce(jsonb_agg(jsonb_build_object('id', f.id, 'claim', f.claim, 'evidence', f.source_ids)
        order by f.created_at, f.id), '[]')
      from app.research_findings f where f.organization_id = o.organization_id));

  if v_summary -> 'sources' = '[]' and v_summary -> 'evidence' = '[]'
     and not v_warnings @> '[{"code": "no_evidence"}]' then
    v_warnings := v_warnings || jsonb_build_array(jsonb_build_object('code', 'no_evidence', 'message',
      'Nothing is known beyond the setup: no source was put, and no website was read.'));
  end if;
  if o.setup -> 'departments' = '[]' then
    v_warnings := v_warnings || jsonb_build_array(jsonb_build_object('code', 'no_departments', 'message',
      'No department is selected: there will be nobody to give work to but the operator.'));
  end if;
  select v_warnings || coalesce(jsonb_agg(jsonb_build_object('code', 'source_failed', 'message',
      format('The source %s cannot be used: %s.', s.file_name, coalesce(s.error ->> 'message', 'it cannot be read')))
      order by s.created_at, s.id), '[]') into v_warnings
    from app.context_sources s
    where s.organization_id = o.organization_id and s.origin in ('onboarding', 'research') and s.status = 'failed';
  select v_warnings || coalesce(jsonb_agg(jsonb_build_object('code', 'integration_undecided', 'message',
      format('Whether to connect %s is not decided.', i.value ->> 'integrationKey')) order by i.place), '[]')
    into v_warnings
    from jsonb_array_elements(o.integrations) with ordinality i(value, place)
    where i.value ->> 'disposition' = 'unknown';
  select v_warnings || coalesce(jsonb_agg(jsonb_build_object('code', 'integration_not_connected', 'message',
      format('%s is to be connected now, and is not.', i.value ->> 'integrationKey')) order by i.place), '[]')
    into v_warnings
    from jsonb_array_elements(o.integrations) with ordinality i(value, place)
    where i.value ->> 'disposition' = 'connect_now'
      and not app.onboarding_integration_usable(o.organization_id, i.value ->> 'integrationKey');

  return jsonb_build_object('summary', v_summary, 'warnings', v_warnings, 'sha256', encode(sha256(convert_to(
    app.canonical_json(jsonb_build_object('summary', v_summary, 'warnings', v_warnings)), 'UTF8')), 'hex'));
end
$$;

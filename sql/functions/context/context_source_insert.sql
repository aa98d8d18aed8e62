-- Records retained bytes as a source; called by transitions of onboarding, research, chats and tasks, under their locks.
-- p_source: {id?, origin, status?, kind, fileName, mediaType, sizeBytes, sha256, storageKey, department?, provenanceUrls?,
-- title?, excerpt?, text?, dedupeKey?}. The same id or dedupeKey with the same bytes again returns the first row; the caller compares
-- storage_key, and deletes bytes that no row names. A job reads and checks a source with status `stored` (the default).
-- Codes: 409 state_conflict (another source has the id or the key).
create or replace function app.context_source_insert(p_organization_id uuid, p_source jsonb)
  returns app.context_sources
  language plpgsql
as $$
declare
  s app.context_sources;
begin
  insert into app.context_sources (organization_id, id, origin, status, kind, file_name, media_type, size_bytes, sha256,
      storage_key, department, provenance_urls, title, excerpt, page_text, dedupe_key, created_at)
    values (p_organization_id, coalesce((p_source ->> 'id')::uuid, app.uuid_v7()), p_source ->> 'origin',
      coalesce(p_source ->> 'status', 'stored'), p_source ->> 'kind', p_source ->> 'fileName',
      p_source ->> 'mediaType', (p_source ->> 'sizeBytes')::bigint, p_source ->> 'sha256', p_source ->> 'storageKey',
      p_source ->> 'department', coalesce(nullif(p_source -> 'provenanceUrls', 'null'), '[]'), p_source ->> 'title',
      p_source ->> 'excerpt', p_source ->> 'text', p_source ->> 'dedupeKey', clock_timestamp())
    on conflict do nothing
    returning * into s;
  if not found then
    select * into s from app.context_sources
      where organization_id = p_organization_id
        and (id = (p_source ->> 'id')::uuid or dedupe_key = p_source ->> 'dedupeKey')
      order by id = (p_source ->> 'id')::uuid desc nulls last limit 1;
    if (s.sha256, s.origin, s.kind, s.file_name, s.department) is distinct from (p_source ->> 'sha256',
        p_source ->> 'origin', p_source ->> 'kind', p_source ->> 'fileName', p_source ->> 'department') then
      perform app.fail(409, 'state_conflict', 'Another source has this id',
        app.issue('sourceId', 'in_use', 'names a source with other bytes or another name'));
    end if;
    return s;
  end if;
  if s.status = 'stored' then
    perform app.enqueue('context__ingest_sources', jsonb_build_object('organizationId', p_organization_id),
      format('context__ingest_sources:%s', p_organization_id));
  end if;
  return s;
end
$$;

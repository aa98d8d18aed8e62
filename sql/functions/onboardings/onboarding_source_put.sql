-- Records an uploaded source. collecting | research_failed stay; review → collecting. Its bytes were checked during the upload,
-- so it can ground evidence immediately. p_source: {id, kind, fileName, mediaType, department} and, after the upload,
-- sizeBytes, sha256 and storageKey; without these it only checks, before the upload.
-- The same id with the same bytes and names changes nothing; with others it is refused, because evidence is immutable.
-- Locks: onboarding. Returns {onboarding, stored}; with `stored: false` the caller deletes its bytes.
-- Codes: 404 request_failed, 409 request_failed (not_permitted, in_use, more than 100 sources).
create or replace function app.onboarding_source_put(p_organization_id uuid, p_source jsonb)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  o app.onboardings;
  s app.context_sources;
begin
  o := app.onboarding_lock(p_organization_id, null, '{collecting, research_failed, review}');
  select * into s from app.context_sources where organization_id = p_organization_id and id = (p_source ->> 'id')::uuid;
  if found then
    if (s.origin, s.kind, s.file_name, s.media_type, s.department)
         is distinct from ('onboarding', p_source ->> 'kind', p_source ->> 'fileName', p_source ->> 'mediaType',
           p_source ->> 'department')
       or s.sha256 <> p_source ->> 'sha256' then
      perform app.fail(409, 'request_failed',
        'Another source has this id: sources are immutable, so delete that one before or take another id',
        app.issue('sourceId', 'in_use', 'names a source with other bytes or other fields'));
    end if;
    return jsonb_build_object('onboarding', app.onboarding_state(o), 'stored', false);
  end if;
  if (select count(*) from app.context_sources where organization_id = p_organization_id and origin = 'onboarding')
       >= 100 then
    perform app.fail(409, 'request_failed', 'An onboarding takes at most 100 sources: delete one before');
  end if;
  if p_source ? 'storageKey' then
    perform app.context_source_insert(p_organization_id,
      p_source || '{"origin": "onboarding", "status": "ingested"}');
    if o.status = 'review' then
      o.status := 'collecting';
    end if;
    o := app.onboarding_write(o);
  end if;
  return jsonb_build_object('onboarding', app.onboarding_state(o), 'stored', p_source ? 'storageKey');
end
$$;

-- Records a health report whose file is stored, as the next revision of the organization's reports. p_report: {assessment,
-- context, storageKey, sizeBytes, sha256, baseRevision, unreadable?}. baseRevision: the latest report that was seen, 0 for none, as
-- parts of it may be kept; once there is a later one nothing is recorded. unreadable, of a full audit: {scope: [path]}; it is noted at the
-- publication if the audited revision is still the published one. Returns {report}, the row, or null.
-- Locks: the reports of the organization (advisory) → publications by scope. Codes: 404 organization_not_found.
create or replace function app.context_health_record(p_organization_id uuid, p_report jsonb)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_latest integer;
  h app.context_health_reports;
begin
  perform pg_advisory_xact_lock(hashtextextended('context_health:' || p_organization_id, 0));
  if not exists (select 1 from app.organizations where id = p_organization_id and deleted_at is null) then
    perform app.fail(404, 'organization_not_found', 'Organization not found');
  end if;
  select coalesce(max(revision), 0) into v_latest from app.context_health_reports where organization_id = p_organization_id;
  if v_latest <> (p_report ->> 'baseRevision')::integer then
    return '{"report": null}';
  end if;
  insert into app.context_health_reports
      (organization_id, revision, version, assessment, context, storage_key, size_bytes, sha256, created_at)
    values (p_organization_id, v_latest + 1, 3, p_report ->> 'assessment', p_report -> 'context',
      p_report ->> 'storageKey', (p_report ->> 'sizeBytes')::bigint, p_report ->> 'sha256', clock_timestamp())
    returning * into h;
  if p_report ? 'unreadable' then
    perform 1 from app.context_publications where organization_id = p_organization_id order by scope for no key update;
    update app.context_publications p
      set unreadable = coalesce(p_report -> 'unreadable' -> p.scope, '[]')
      where p.organization_id = p_organization_id and p.revision = (p_report #>> array['context', p.scope])::integer
        and p.unreadable <> coalesce(p_report -> 'unreadable' -> p.scope, '[]');
  end if;
  return jsonb_build_object('report', to_jsonb(h));
end
$$;

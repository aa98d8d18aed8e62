-- Adds claims, each with at least one source of the organization. p_findings: [{claim, evidence: [source id]}]. A claim that
-- exists already is not added again. The caller has locked the onboarding.
-- Codes: 400 request_failed (unknown_source), 409 request_failed (more than 500 claims).
create or replace function app.onboarding_findings_insert(p_organization_id uuid, p_findings jsonb, p_origin text)
  returns void
  language plpgsql
as $$
begin
  if exists (
      select 1 from jsonb_array_elements(p_findings) f
        cross join lateral jsonb_array_elements_text(f -> 'evidence') e(id)
        where not exists (select 1 from app.context_sources s
                          where s.organization_id = p_organization_id and s.id = e.id::uuid)) then
    perform app.fail(400, 'request_failed', 'A claim cites a source that the organization does not have',
      app.issue('findings', 'unknown_source', 'names no source of the organization'));
  end if;
  insert into app.research_findings (organization_id, origin, claim, source_ids, created_at)
    select p_organization_id, p_origin, f.value ->> 'claim', f.value -> 'evidence', clock_timestamp()
      from jsonb_array_elements(p_findings) with ordinality f(value, place)
      where not exists (select 1 from app.research_findings r
                        where r.organization_id = p_organization_id and r.claim = f.value ->> 'claim')
      order by f.place;
  if (select count(*) from app.research_findings where organization_id = p_organization_id) > 500 then
    perform app.fail(409, 'request_failed', 'An onboarding holds at most 500 findings');
  end if;
end
$$;

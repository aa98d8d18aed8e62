-- The onboarding as the API shows it: the row, with `sources` (the uploaded ones) and `findings` as rows.
create or replace function app.onboarding_state(o app.onboardings)
  returns jsonb
  language plpgsql
as $$
begin
  return to_jsonb(o) || jsonb_build_object(
    'sources', (select coalesce(jsonb_agg(to_jsonb(s) - 'storage_key' order by s.created_at, s.id), '[]')
      from app.context_sources s where s.organization_id = o.organization_id and s.origin = 'onboarding'),
    'findings', (select coalesce(jsonb_agg(to_jsonb(f) order by f.created_at, f.id), '[]')
      from app.research_findings f where f.organization_id = o.organization_id));
end
$$;

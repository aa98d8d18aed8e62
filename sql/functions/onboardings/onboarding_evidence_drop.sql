-- Deletes what the research has read, except what claims from the chat cite, because the setup names another website now. The
-- caller has locked the onboarding. Returns the storage keys, whose bytes the caller deletes after the commit.
create or replace function app.onboarding_evidence_drop(p_organization_id uuid)
  returns jsonb
  language plpgsql
as $$
declare
  v_keys jsonb;
begin
  delete from app.research_findings where organization_id = p_organization_id and origin = 'job';
  select coalesce(jsonb_agg(app.context_source_delete(p_organization_id, s.id)), '[]') into v_keys
    from app.context_sources s
    where s.organization_id = p_organization_id and s.origin = 'research' and not exists (
      select 1 from app.research_findings f
      where f.organization_id = p_organization_id and f.source_ids ? s.id::text);
  return v_keys;
end
$$;

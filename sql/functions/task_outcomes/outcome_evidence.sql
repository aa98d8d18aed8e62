-- The evidence of a verdict as it is stored: files, with size and digest of what was stored. issues: one for each file that
-- is not a stored output of a run of this organization, or not what the evidence claims; null if there is none.
create or replace function app.outcome_evidence(
  p_organization_id uuid, p_evidence jsonb, out evidence jsonb, out issues jsonb)
  language sql stable
as $$
  select coalesce(jsonb_agg(case e.item ->> 'kind' when 'file' then s.stored else e.item end order by e.place), '[]'),
    jsonb_agg(i.issue order by e.place) filter (where i.issue is not null)
  from jsonb_array_elements(p_evidence) with ordinality e(item, place)
  left join app.run_outputs o on e.item ->> 'kind' = 'file' and o.organization_id = p_organization_id
    and o.run_id = (e.item ->> 'runId')::uuid and o.path = e.item ->> 'path'
  cross join lateral (select app.output_evidence(o) as stored offset 0) s
  cross join lateral (select case e.item ->> 'kind' when 'file' then app.output_claim_issue(e.item, s.stored,
    format('outcome.evidence.%s', e.place - 1)) end as issue offset 0) i
$$;

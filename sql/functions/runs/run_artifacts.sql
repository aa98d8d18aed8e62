-- Checks the artifact list of a result against the stored outputs of the run, which decide size, digest and media type; the
-- worker only says which files belong to the result.
-- Returns artifacts, as the result records them, and outputs, the same files with their storage keys for the evaluation.
-- Codes: 400 validation_failed with not_stored | differs_from_stored.
create or replace function app.run_artifacts(
  p_organization_id uuid, p_run_id uuid, p_artifacts jsonb, out artifacts jsonb, out outputs jsonb)
  language plpgsql stable
as $$
declare
  v_issues jsonb;
begin
  select coalesce(jsonb_agg(e.stored || jsonb_strip_nulls(jsonb_build_object('name', a.item ->> 'name')) order by a.place), '[]'),
    coalesce(jsonb_agg(jsonb_build_object('path', o.path, 'size', o.size, 'sha256', o.sha256,
        'mediaType', o.media_type, 'storageKey', o.storage_key) order by a.place), '[]'),
    jsonb_agg(i.issue order by a.place) filter (where i.issue is not null)
    into artifacts, outputs, v_issues
    from jsonb_array_elements(p_artifacts) with ordinality a(item, place)
    left join app.run_outputs o on o.organization_id = p_organization_id and o.run_id = p_run_id
      and o.path = a.item ->> 'path'
    cross join lateral (select app.output_evidence(o) as stored offset 0) e
    cross join lateral (select app.output_claim_issue(a.item, e.stored,
      format('output.result.artifacts.%s', a.place - 1)) as issue offset 0) i;
  if v_issues is not null then
    perform app.fail(400, 'validation_failed', 'An artifact is not what was stored', v_issues);
  end if;
end
$$;

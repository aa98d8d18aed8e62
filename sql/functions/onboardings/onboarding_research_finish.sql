-- Onboarding researching → review | research_failed, at the end of an attempt. p_outcome: {status: completed, findings:
-- [{claim, evidence: [source id]}], warnings: [{code, message}]} or {status: failed, error: {code, message, retryable}}. The
-- findings replace those of the previous attempt; findings that exceed the limit together with those of the chat are left out,
-- with a warning.
-- Locks: onboarding. Returns {onboarding}, null if the attempt is over or a newer one has begun; then nothing is written.
-- Codes: 400 request_failed (unknown_source).
create or replace function app.onboarding_research_finish(p_organization_id uuid, p_generation integer, p_outcome jsonb)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_findings jsonb;
  v_left_out integer;
  o app.onboardings;
begin
  o := app.onboarding_research_lock(p_organization_id, p_generation);
  if o.organization_id is null then
    return '{"onboarding": null}';
  end if;
  o.research_started_at := coalesce(o.research_started_at, clock_timestamp());
  o.research_finished_at := clock_timestamp();
  if p_outcome ->> 'status' = 'failed' then
    o.status := 'research_failed';
    o.research_status := 'failed';
    o.research_error := p_outcome -> 'error';
  else
    o.status := 'review';
    o.research_status := 'completed';
    o.research_warnings := coalesce(nullif(p_outcome -> 'warnings', 'null'), '[]');
    delete from app.research_findings where organization_id = p_organization_id and origin = 'job';
    select coalesce(jsonb_agg(f.value order by f.place) filter (where f.place <= r.free), '[]'),
        count(*) filter (where f.place > r.free)
      into v_findings, v_left_out
      from (select 500 - count(*) as free from app.research_findings where organization_id = p_organization_id) r
        cross join (
          select n.value, row_number() over (order by n.place) as place
            from jsonb_array_elements(coalesce(nullif(p_outcome -> 'findings', 'null'), '[]')) with ordinality n(value, place)
            where not exists (select 1 from app.research_findings h
                              where h.organization_id = p_organization_id and h.claim = n.value ->> 'claim')) f;
    if v_left_out > 0 then
      o.research_warnings := o.research_warnings || jsonb_build_array(jsonb_build_object('code', 'findings_left_out',
        'message', format('Left out of what the research found, because an onboarding holds at most 500 findings: %s.',
          v_left_out)));
    end if;
    perform app.onboarding_findings_insert(p_organization_id, v_findings, 'job');
  end if;
  o := app.onboarding_write(o);
  return jsonb_build_object('onboarding', app.onboarding_state(o));
end
$$;

-- The end of an attempt: researching → review | research_failed. p_outcome: {status: completed, findings: [{claim, evidence:
-- [source id]}], warnings: [{code, message}]} or {status: failed, error: {code, message, retryable}}. The findings take the
-- place of those of the attempt before. Locks: onboarding.
-- Returns {onboarding}, null when the attempt is over or another one has begun: nothing is written then.
-- Codes: 400 request_failed (unknown_source), 409 request_failed (more than 500 claims).
create or replace function app.onboarding_research_finish(p_organization_id uuid, p_generation integer, p_outcome jsonb)
  returns jsonb
  language plpgsql security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
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
    perform app.onboarding_findings_insert(p_organization_id,
      coalesce(nullif(p_outcome -> 'findings', 'null'), '[]'), 'job');
  end if;
  o := app.onboarding_write(o);
  return jsonb_build_object('onboarding', app.onboarding_state(o));
end
$$;

alter function app.onboarding_research_finish owner to runner_scoped;
revoke all on function app.onboarding_research_finish from public;
grant execute on function app.onboarding_research_finish to runner_jobs;

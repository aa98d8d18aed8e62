-- Onboarding research_failed → researching: queues the research again. The evidence of the previous attempt stays, and is
-- reused.
-- Locks: onboarding. Returns {onboarding}. Codes: 404 request_failed, 409 request_failed (stale, not_permitted, suspended).
create or replace function app.onboarding_research_retry(p_organization_id uuid, p_expected_generation integer)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  o app.onboardings;
begin
  o := app.onboarding_lock(p_organization_id, p_expected_generation, '{research_failed}');
  perform app.onboarding_require_running(p_organization_id);
  o := app.onboarding_research_queue(o);
  return jsonb_build_object('onboarding', app.onboarding_state(o));
end
$$;

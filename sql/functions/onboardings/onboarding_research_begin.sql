-- Research queued | running → running: the job of an attempt begins, or continues after its process died.
-- Locks: onboarding. Returns {onboarding}, null if the attempt is over or a newer one has begun. Codes: none.
create or replace function app.onboarding_research_begin(p_organization_id uuid, p_generation integer)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  o app.onboardings;
begin
  o := app.onboarding_research_lock(p_organization_id, p_generation);
  if o.organization_id is null then
    return '{"onboarding": null}';
  end if;
  -- No caller of the API depends on this, so the generation stays, and the one that the job carries remains valid.
  update app.onboardings
    set research_status = 'running', research_started_at = coalesce(research_started_at, clock_timestamp()),
      updated_at = greatest(clock_timestamp(), updated_at)
    where organization_id = p_organization_id
    returning * into o;
  return jsonb_build_object('onboarding', app.onboarding_state(o));
end
$$;

-- The job of an attempt begins, or goes on after its process died: queued | running → running.
-- Locks: onboarding. Returns {onboarding}, null when the attempt is over or another one has begun. Codes: none.
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
  -- Nothing that a caller of the API could have judged by: the generation stays, and so does what the job carries.
  update app.onboardings
    set research_status = 'running', research_started_at = coalesce(research_started_at, clock_timestamp()),
      updated_at = greatest(clock_timestamp(), updated_at)
    where organization_id = p_organization_id
    returning * into o;
  return jsonb_build_object('onboarding', app.onboarding_state(o));
end
$$;

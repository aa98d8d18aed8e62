-- Onboarding collecting | researching | research_failed | review → discarded: deletes the organization with everything in it.
-- Locks: organization → onboarding → … as organization_delete. Returns {onboarding}.
-- Codes: 404 request_failed (also for a repeat), 409 request_failed (not_permitted: completed).
create or replace function app.onboarding_discard(p_organization_id uuid)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  o app.onboardings;
begin
  perform 1 from app.organizations where id = p_organization_id for no key update;
  o := app.onboarding_lock(p_organization_id, null, '{collecting, researching, research_failed, review}');
  o.status := 'discarded';
  o := app.onboarding_write(o);
  perform app.organization_delete(p_organization_id);
  return jsonb_build_object('onboarding', app.onboarding_state(o));
end
$$;

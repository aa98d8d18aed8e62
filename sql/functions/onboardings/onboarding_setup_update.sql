-- Changes the setup. collecting | research_failed stay; review stays with a new review, or → collecting if the website changes.
-- Name, time zone and departments apply to the organization immediately. A change to the same values changes nothing.
-- p_patch: {name, website, timezone, defaultCurrency, departments, summary}, each optional.
-- Locks: organization → onboarding → sources. Returns {onboarding, removedKeys}.
-- Codes: 404 request_failed, 409 request_failed (stale, not_permitted).
create or replace function app.onboarding_setup_update(
  p_organization_id uuid, p_expected_generation integer, p_patch jsonb)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_keys jsonb := '[]';
  v_website text;
  o app.onboardings;
begin
  perform 1 from app.organizations where id = p_organization_id for no key update;
  o := app.onboarding_lock(p_organization_id, p_expected_generation, '{collecting, research_failed, review}');
  if o.setup || p_patch = o.setup then
    return jsonb_build_object('onboarding', app.onboarding_state(o), 'removedKeys', v_keys);
  end if;
  v_website := o.setup ->> 'website';
  o.setup := o.setup || p_patch;
  if v_website is distinct from o.setup ->> 'website' then
    v_keys := app.onboarding_evidence_drop(p_organization_id);
    o.research_warnings := '[]';
    if o.status = 'review' then
      o.status := 'collecting';
    end if;
  end if;
  update app.organizations
    set name = o.setup ->> 'name', config = config || app.onboarding_config(o.setup), updated_at = clock_timestamp()
    where id = p_organization_id;
  o := app.onboarding_write(o);
  return jsonb_build_object('onboarding', app.onboarding_state(o), 'removedKeys', v_keys);
end
$$;

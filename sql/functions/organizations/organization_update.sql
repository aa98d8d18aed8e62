-- Changes an organization by a JSON merge patch. Changed constraints raise authorizationEpoch, which never falls.
-- active | onboarding → suspended: claims end, and nothing is handed out. suspended → active | onboarding: dispatch is open
-- again. While an onboarding is not completed, only its completion makes the organization active; without such an onboarding it
-- cannot become onboarding. Until then, changes of name, time zone and departments also change the setup, which in review makes
-- a new review.
-- Locks: organization → onboarding → run requests → dispatch.
-- Codes: 403 forbidden (a member sets or lifts suspended), 404 organization_not_found, 409 request_failed (slug in use), 409
-- state_conflict (epoch lowered, not_onboarded, no_onboarding).
create or replace function app.organization_update(p_organization_id uuid, p_patch jsonb, p_platform boolean)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_defaults jsonb := app.organization_defaults(p_organization_id);
  o app.organizations;
  n app.organizations;
  v_onboarding app.onboardings;
  v_setup jsonb := '{}';
begin
  select * into o from app.organizations where id = p_organization_id and deleted_at is null for no key update;
  if not found then
    perform app.fail(404, 'organization_not_found', 'Organization not found');
  end if;
  n := o;
  if p_patch ? 'slug' then n.slug := p_patch ->> 'slug'; end if;
  if p_patch ? 'name' then n.name := p_patch ->> 'name'; end if;
  if p_patch ? 'status' then n.status := p_patch ->> 'status'; end if;
  if p_patch ? 'onboardedAt' then n.onboarded_at := (p_patch ->> 'onboardedAt')::timestamptz; end if;
  if p_patch ? 'rootUri' then
    n.root_uri := coalesce(p_patch ->> 'rootUri', format('org://%s', p_organization_id));
  end if;
  -- A value or object that the patch removes gets its default.
  n.config := app.merge_patch(v_defaults -> 'config', nullif(app.merge_patch(o.config, p_patch -> 'config'), 'null'));
  n.constraints := app.merge_patch(v_defaults -> 'constraints',
    nullif(app.merge_patch(o.constraints, p_patch -> 'constraints'), 'null'));
  if n.status <> o.status and 'suspended' in (n.status, o.status) and not p_platform then
    perform app.fail(403, 'forbidden', 'Only platform operators suspend an organization or lift that');
  end if;
  select * into v_onboarding from app.onboardings
    where organization_id = p_organization_id and status <> 'completed' for no key update;
  if n.status <> o.status and n.status = 'onboarding' and v_onboarding.organization_id is null then
    perform app.fail(409, 'state_conflict', 'An onboarding that is not completed makes an organization onboarding',
      app.issue('status', 'no_onboarding', 'there is no onboarding, or it is completed'));
  end if;
  if n.status <> o.status and n.status = 'active' and v_onboarding.organization_id is not null then
    perform app.fail(409, 'state_conflict', 'The completion of the onboarding makes the organization active',
      app.issue('status', 'not_onboarded', 'the onboarding is not completed'));
  end if;
  if p_patch ? 'authorizationEpoch' then
    n.authorization_epoch := (p_patch ->> 'authorizationEpoch')::integer;
    if n.authorization_epoch < o.authorization_epoch then
      perform app.fail(409, 'state_conflict', 'authorizationEpoch only rises',
        app.issue('authorizationEpoch', 'lowered', format('is %s', o.authorization_epoch)));
    end if;
  end if;
  if n.constraints <> o.constraints then
    n.authorization_epoch := greatest(n.authorization_epoch, o.authorization_epoch + 1);
  end if;
  if n is not distinct from o then
    return jsonb_build_object('organization', to_jsonb(o));
  end if;
  begin
    update app.organizations
      set slug = n.slug, name = n.name, status = n.status, onboarded_at = n.onboarded_at, root_uri = n.root_uri,
        authorization_epoch = n.authorization_epoch, config = n.config, constraints = n.constraints,
        updated_at = clock_timestamp()
      where id = p_organization_id
      returning * into n;
  exception when unique_violation then
    perform app.fail(409, 'request_failed', 'An organization with this slug exists',
      app.issue('slug', 'in_use', 'is taken by another organization'));
  end;
  if v_onboarding.organization_id is not null then
    if n.name <> o.name then
      v_setup := v_setup || jsonb_build_object('name', n.name);
    end if;
    if n.config -> 'timezone' <> o.config -> 'timezone' then
      v_setup := v_setup || jsonb_build_object('timezone', n.config -> 'timezone');
    end if;
    if n.config -> 'departments' <> o.config -> 'departments' then
      v_setup := v_setup || jsonb_build_object('departments', (
        select coalesce(jsonb_agg(d.key order by d.key), '[]') from jsonb_each(n.config -> 'departments') d
          where (d.value ->> 'enabled')::boolean));
    end if;
    if v_setup <> '{}' then
      v_onboarding.setup := v_onboarding.setup || v_setup;
      perform app.onboarding_write(v_onboarding);
    end if;
  end if;
  if n.status = 'suspended' and o.status <> 'suspended' then
    update app.run_requests
      set state = 'published', lease_secret_hash = null, lease_expires_at = null
      where organization_id = p_organization_id and state = 'leased';
  end if;
  perform app.dispatch_settle(p_organization_id);
  update app.dispatch
    set suspended = n.status = 'suspended',
      capacity = case kind when 'task' then (n.config #>> '{limits,maxConcurrentRuns}')::integer else capacity end
    where organization_id = p_organization_id;
  return jsonb_build_object('organization', to_jsonb(n));
end
$$;

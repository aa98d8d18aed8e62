-- Organization (none) → onboarding | active | suspended, with an id chosen by the client. p_fields: {slug, name, status,
-- onboardedAt, rootUri, authorizationEpoch, config, constraints, provision}, validated in shape; config and constraints are
-- merged over the defaults. provision: true (the enabled departments) or {departments}: its profiles are those of the current
-- template catalog.
-- p_subject: the JWT subject that becomes its owner; null for a platform operator.
-- Codes: 403 forbidden (a subject creates a suspended one), 409 state_conflict (id in use), 409 request_failed (slug in use), 503
-- request_failed (to be provisioned, and no catalog is published).
create or replace function app.organization_create(p_organization_id uuid, p_fields jsonb, p_subject text)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_defaults jsonb := app.organization_defaults(p_organization_id);
  v_constraint text;
  o app.organizations;
begin
  if p_subject is not null and p_fields ->> 'status' = 'suspended' then
    perform app.fail(403, 'forbidden', 'Only platform operators suspend an organization or lift that');
  end if;
  begin
    insert into app.organizations (id, slug, name, status, onboarded_at, root_uri, authorization_epoch, config, constraints)
      values (p_organization_id, p_fields ->> 'slug', p_fields ->> 'name', coalesce(p_fields ->> 'status', 'active'),
        (p_fields ->> 'onboardedAt')::timestamptz,
        coalesce(p_fields ->> 'rootUri', format('org://%s', p_organization_id)),
        coalesce((p_fields ->> 'authorizationEpoch')::integer, 1),
        app.merge_patch(v_defaults -> 'config', p_fields -> 'config'),
        app.merge_patch(v_defaults -> 'constraints', p_fields -> 'constraints'))
      returning * into o;
  exception when unique_violation then
    get stacked diagnostics v_constraint = constraint_name;
    if v_constraint = 'organizations_slug_idx' then
      perform app.fail(409, 'request_failed', 'An organization with this slug exists',
        app.issue('slug', 'in_use', 'is taken by another organization'));
    end if;
    perform app.fail(409, 'state_conflict', 'An organization with this id exists',
      app.issue('organizationId', 'in_use', 'is taken'));
  end;
  insert into app.dispatch (organization_id, kind, capacity, stopped, suspended)
    values (o.id, 'task', (o.config #>> '{limits,maxConcurrentRuns}')::integer, o.status = 'onboarding', o.status = 'suspended'),
           (o.id, 'chat', 20, false, o.status = 'suspended');
  insert into app.task_identifiers (organization_id, scope) values (o.id, 'T'), (o.id, 'I');
  if p_subject is not null then
    insert into app.organization_members (organization_id, subject, role) values (o.id, p_subject, 'owner');
  end if;
  if p_fields -> 'provision' not in ('false', 'null') then
    perform app.agent_profiles_provision(p_organization_id, case jsonb_typeof(p_fields -> 'provision')
      when 'boolean' then array(select d.key from jsonb_each(o.config -> 'departments') d where (d.value ->> 'enabled')::boolean)
      else array(select jsonb_array_elements_text(p_fields #> '{provision,departments}')) end, null);
    -- Each new profile raises the authorization epoch.
    select * into o from app.organizations where id = o.id;
  end if;
  return jsonb_build_object('organization', to_jsonb(o));
end
$$;

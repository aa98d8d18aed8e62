-- Integration (none) → not connected, enabled (docs/interface.md 4.10). p_integration: {key, provider, name, departments,
-- accessMode, settingsRequired, tools, hosts}, validated in shape; settingsRequired, tools and hosts are what the provider says. All
-- tools are off. An onboarding that is not over gets its next generation. Returns {integration}.
-- Locks: organization → onboarding. Codes: 403 provider_forbidden, 404 organization_not_found, 409 integration_conflict (key in
-- use).
create or replace function app.integration_create(p_organization_id uuid, p_integration jsonb)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_onboarding app.onboardings;
  i app.integrations;
begin
  perform 1 from app.organizations where id = p_organization_id and deleted_at is null for no key update;
  if not found then
    perform app.fail(404, 'organization_not_found', 'Organization not found');
  end if;
  perform app.integration_provider_require(p_organization_id, p_integration ->> 'provider');
  if app.integration_hosts_blocked(p_organization_id, p_integration -> 'hosts') then
    perform app.fail(403, 'provider_forbidden', 'The organization blocks the domain of this provider',
      app.issue('provider', 'blocked', 'is of a domain among constraints.blockedDomains'));
  end if;
  select * into v_onboarding from app.onboardings
    where organization_id = p_organization_id and status not in ('completed', 'discarded') for no key update;
  insert into app.integrations (organization_id, key, provider, name, access_mode, departments, settings_required)
    values (p_organization_id, p_integration ->> 'key', p_integration ->> 'provider', p_integration ->> 'name',
      coalesce(p_integration ->> 'accessMode', 'read_only'), coalesce(p_integration -> 'departments', '[]'),
      (p_integration ->> 'settingsRequired')::boolean)
    on conflict (organization_id, key) do nothing
    returning * into i;
  if not found then
    perform app.fail(409, 'integration_conflict', 'Another integration has this key',
      app.issue('key', 'in_use', 'is the key of another integration'));
  end if;
  perform app.integration_tools_write(p_organization_id, i.id, coalesce(p_integration -> 'tools', '[]'));
  if v_onboarding.organization_id is not null then
    perform app.onboarding_write(v_onboarding);
  end if;
  return jsonb_build_object('integration', app.integration_record(i));
end
$$;

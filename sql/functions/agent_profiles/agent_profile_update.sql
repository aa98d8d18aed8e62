-- Changes a profile by a JSON merge patch; see agent_profile_apply for the consequences. Returns {agent_profile}.
-- Locks: organization → profile → … as agent_profile_apply.
-- Codes: 400 validation_failed (department of another kind, catalogSource), 404 organization_not_found |
-- agent_profile_not_found, 409 state_conflict (key in use).
create or replace function app.agent_profile_update(p_organization_id uuid, p_agent_profile_id uuid, p_patch jsonb)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  o app.agent_profiles;
  n app.agent_profiles;
begin
  perform 1 from app.organizations where id = p_organization_id and deleted_at is null for no key update;
  if not found then
    perform app.fail(404, 'organization_not_found', 'Organization not found');
  end if;
  select * into o from app.agent_profiles
    where organization_id = p_organization_id and id = p_agent_profile_id and deleted_at is null for no key update;
  if not found then
    perform app.fail(404, 'agent_profile_not_found', 'Agent profile not found');
  end if;
  n := o;
  if p_patch ? 'key' then n.key := p_patch ->> 'key'; end if;
  if p_patch ? 'name' then n.name := p_patch ->> 'name'; end if;
  if p_patch ? 'kind' then n.kind := p_patch ->> 'kind'; end if;
  if p_patch ? 'department' then n.department := p_patch ->> 'department'; end if;
  if p_patch ? 'status' then n.status := p_patch ->> 'status'; end if;
  if p_patch ? 'rootUri' then
    n.root_uri := coalesce(p_patch ->> 'rootUri', format('org://%s/profiles/%s', p_organization_id, n.key));
  end if;
  if p_patch ? 'instructionsUri' then
    n.instructions_uri := coalesce(p_patch ->> 'instructionsUri',
      format('org://%s/profiles/%s/instructions.md', p_organization_id, n.key));
  end if;
  n.config := app.merge_patch(app.agent_profile_defaults(p_organization_id, n.key),
    nullif(app.merge_patch(o.config, p_patch -> 'config'), 'null'));
  if n.config -> 'catalogSource' is distinct from o.config -> 'catalogSource' then
    perform app.agent_profile_source_check(n.config -> 'catalogSource');
  end if;
  if n.config -> 'toolPolicyKeys' <> o.config -> 'toolPolicyKeys' then
    n.tool_policy_narrowed := false;
  end if;
  if (n.kind = 'department') <> (n.department is not null) then
    perform app.fail(400, 'validation_failed', 'Department profiles have a department, and no others do',
      app.issue('department', 'department_of_kind', format('does not go with kind %s', n.kind)));
  end if;
  if n.key <> o.key and exists (
    select 1 from app.agent_profiles
      where organization_id = p_organization_id and key = n.key and deleted_at is null) then
    perform app.fail(409, 'state_conflict', 'A profile with this key exists', app.issue('key', 'in_use', 'is taken'));
  end if;
  return jsonb_build_object('agent_profile', to_jsonb(app.agent_profile_apply(o, n)));
end
$$;

-- Profile (none) → enabled | disabled. p_fields: {key, name, kind, department, status, rootUri, instructionsUri, config},
-- validated in shape; config is merged over the defaults. Locks: organization.
-- Codes: 400 validation_failed (catalogSource), 404 organization_not_found, 409 state_conflict (key in use).
create or replace function app.agent_profile_create(p_organization_id uuid, p_fields jsonb)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
begin
  perform 1 from app.organizations where id = p_organization_id and deleted_at is null for no key update;
  if not found then
    perform app.fail(404, 'organization_not_found', 'Organization not found');
  end if;
  perform app.agent_profile_source_check(p_fields #> '{config,catalogSource}');
  if exists (select 1 from app.agent_profiles
             where organization_id = p_organization_id and key = p_fields ->> 'key' and deleted_at is null) then
    perform app.fail(409, 'state_conflict', 'A profile with this key exists', app.issue('key', 'in_use', 'is taken'));
  end if;
  update app.organizations set authorization_epoch = authorization_epoch + 1, updated_at = clock_timestamp()
    where id = p_organization_id;
  return jsonb_build_object('agent_profile', to_jsonb(app.agent_profile_insert(p_organization_id, p_fields)));
end
$$;

-- Profile enabled → disabled, and hidden; its tasks and runs still refer to it. Returns {agent_profile}.
-- Locks: organization → profile → … as agent_profile_apply.
-- Codes: 404 organization_not_found | agent_profile_not_found (also for a repeat).
create or replace function app.agent_profile_delete(p_organization_id uuid, p_agent_profile_id uuid)
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
  n.status := 'disabled';
  n.deleted_at := clock_timestamp();
  return jsonb_build_object('agent_profile', to_jsonb(app.agent_profile_apply(o, n)));
end
$$;

-- The profile that owns the tasks of a template, locked (shared, as at the creation of a task); null when there is none
-- (any more), or the template names none.
create or replace function app.schedule_profile(p_organization_id uuid, p_template jsonb, p_enabled boolean default false)
  returns uuid
  language sql
  set search_path = pg_catalog, pg_temp
as $$
  select p.id from app.agent_profiles p
    where p.organization_id = p_organization_id and p.deleted_at is null
      and case when p_template ? 'ownerAgentProfileId' then p.id = (p_template ->> 'ownerAgentProfileId')::uuid
          else p.key = p_template ->> 'ownerProfileKey' end
      and (not p_enabled or p.status = 'enabled')
    for share of p
$$;

alter function app.schedule_profile owner to runner_scoped;
revoke all on function app.schedule_profile from public;

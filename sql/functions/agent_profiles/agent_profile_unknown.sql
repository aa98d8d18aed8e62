-- The issue of a task's p_path, which names no profile of the organization, or of a task that names none where there is no
-- operator. An organization without any profile is told how to get some.
create or replace function app.agent_profile_unknown(p_organization_id uuid, p_path text, p_named boolean default true)
  returns jsonb
  language sql stable
as $$
  select app.issue(p_path, 'unknown_profile', case
    when not exists (select 1 from app.agent_profiles p where p.organization_id = p_organization_id and p.deleted_at is null)
      then 'the organization has no agent profiles yet: POST /organizations/{organizationId}/agent-profiles/provision '
        || 'makes those of the template catalog'
    when not p_named
      then 'is required: the organization has no operator profile, which would own the task'
    else 'names no agent profile of this organization' end)
$$;

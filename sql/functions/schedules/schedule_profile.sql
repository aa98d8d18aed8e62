-- The profile that owns the tasks of a template, with a shared lock, as when a task is created: the profile that the template
-- names, or else that of the run whose capability p_actor carries. Returns a row without id if there is none.
create or replace function app.schedule_profile(p_organization_id uuid, p_template jsonb, p_actor jsonb)
  returns app.agent_profiles
  language sql
as $$
  select p.* from app.agent_profiles p
    where p.organization_id = p_organization_id and p.deleted_at is null
      and case
        when p_template ->> 'ownerAgentProfileId' is not null then p.id = (p_template ->> 'ownerAgentProfileId')::uuid
        when p_template ->> 'ownerProfileKey' is not null then p.key = p_template ->> 'ownerProfileKey'
        else p.id = (select r.agent_profile_id from app.run_requests r
          where r.organization_id = p_organization_id and r.execution_token_hash = p_actor ->> 'tokenHash'
            and r.state = 'started') end
    for share of p
$$;

-- The profile that owns a new task, with a shared lock: the one that p_task names, else that of the run whose capability p_actor
-- carries, else the operator of the organization (an enabled one first). Returns a row without id if there is none.
create or replace function app.task_profile(p_organization_id uuid, p_task jsonb, p_actor jsonb)
  returns app.agent_profiles
  language sql
as $$
  select p.* from app.agent_profiles p
    where p.organization_id = p_organization_id and p.deleted_at is null
      and case
        when p_task ->> 'ownerAgentProfileId' is not null then p.id = (p_task ->> 'ownerAgentProfileId')::uuid
        when p_task ->> 'ownerProfileKey' is not null then p.key = p_task ->> 'ownerProfileKey'
        else p.id = coalesce(
          (select r.agent_profile_id from app.run_requests r
             where r.organization_id = p_organization_id and r.execution_token_hash = p_actor ->> 'tokenHash'
               and r.state = 'started'),
          (select o.id from app.agent_profiles o
             where o.organization_id = p_organization_id and o.kind = 'operator' and o.deleted_at is null
             order by o.status = 'enabled' desc, o.created_at, o.id limit 1)) end
    for share of p
$$;

-- The profile that verifies results of a task that requires a verdict: the one that its spec names, or else the operator, but
-- never the executor. p_enabled: only an enabled one. Null if there is none.
create or replace function app.task_verifier(
  p_organization_id uuid, p_spec jsonb, p_executor_profile_id uuid, p_enabled boolean)
  returns uuid
  language sql stable
as $$
  select p.id from app.agent_profiles p
    where p.organization_id = p_organization_id and p.deleted_at is null and p.id <> p_executor_profile_id
      and (p.status = 'enabled' or not p_enabled)
      and (p.key = p_spec ->> 'verifierProfileKey' or p.kind = 'operator')
    order by p.key is not distinct from p_spec ->> 'verifierProfileKey' desc, p.created_at, p.id
    limit 1
$$;

-- Refuses a spec that requires a verdict which no profile can give. p_named: the spec names its verifier in this call; a
-- verifier named earlier that is gone is replaced by the operator (task_verifier).
-- Codes: 400 validation_failed with unknown_profile | no_verifier.
create or replace function app.task_verifier_require(
  p_organization_id uuid, p_spec jsonb, p_executor_profile_id uuid, p_named boolean default true)
  returns void
  language plpgsql stable
as $$
begin
  if p_named and p_spec ->> 'verifierProfileKey' is not null and not exists (
    select 1 from app.agent_profiles p where p.organization_id = p_organization_id and p.deleted_at is null
      and p.key = p_spec ->> 'verifierProfileKey') then
    perform app.fail(400, 'validation_failed', 'The verifier is not a profile of this organization',
      app.agent_profile_unknown(p_organization_id, 'spec.verifierProfileKey'));
  end if;
  if p_spec ->> 'verification' = 'agent'
     and app.task_verifier(p_organization_id, p_spec, p_executor_profile_id, false) is null then
    perform app.fail(400, 'validation_failed', 'Nobody but its executor could verify the task',
      app.issue('spec.verification', 'no_verifier',
        'name a verifierProfileKey, or have an operator profile, that is not the owner of the task'));
  end if;
end
$$;

-- Judges a call of the gateway of git, beyond what integration_capability_check does: task runs of engineering that do not verify, with
-- git.read. Returns what that returns, and pushRefusal: {code, message}, why the execution may read and not push, or null.
-- Locks: none. Codes: 401 agent_unauthorized, 409 state_conflict (verify_read_only, execution, department, tool_policy, and those of
-- integration_capability_check).
create or replace function app.integration_git_check(p_organization_id uuid, p_token_hash text, p_integration_id uuid)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_call constant jsonb := app.integration_capability_check(p_organization_id, p_token_hash, p_integration_id, 'git');
  v_mode constant text := v_call #>> '{execution,mode}';
  v_reason text;
  p app.agent_profiles;
begin
  select * into p from app.agent_profiles
    where organization_id = p_organization_id and id = (v_call #>> '{execution,agentProfileId}')::uuid;
  v_reason := case
    when v_mode = 'verify' then 'verify_read_only'
    when v_call #>> '{execution,taskId}' is null then 'execution'
    when p.department is distinct from 'engineering' then 'department'
    when not v_call -> 'policies' ? 'git.read' then 'tool_policy' end;
  if v_reason is not null then
    perform app.fail(409, 'state_conflict', 'Repositories are not available to this execution',
      app.issue('integrationId', v_reason, case v_reason
        when 'verify_read_only' then 'a run that verifies reaches no repository'
        when 'execution' then 'only runs of tasks reach repositories'
        when 'department' then 'only runs of engineering reach repositories'
        when 'tool_policy' then 'the profile may not read repositories (git.read)' end));
  end if;
  return v_call || jsonb_build_object('pushRefusal', case
    when v_mode <> 'execute' then
      jsonb_build_object('code', 'wrong_mode', 'message', format('a run of mode %s pushes nothing', v_mode))
    when v_call #>> '{integration,accessMode}' <> 'full' then
      '{"code": "read_only", "message": "the integration is read-only: its owner can change its access mode"}'
    when not v_call -> 'policies' ? 'git.propose' then
      '{"code": "tool_policy", "message": "the profile may read repositories and not push (git.propose)"}' end);
end
$$;

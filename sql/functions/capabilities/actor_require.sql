-- Checks that the actor may make this change. Called by every transition that owners and agents share, with the task's roots
-- locked.
-- p_actor: {kind: owner} | {kind: service} | {kind: capability, tokenHash}. p_task_id null: the change is not about one task.
-- Returns {} or {runId, taskId, agentProfileId, profileKind}.
-- Locks: run request of a capability, so that using a capability and ending its lease exclude each other.
-- Codes: 401 agent_unauthorized, 404 organization_not_found, 409 state_conflict (agents of a suspended organization).
create or replace function app.actor_require(p_organization_id uuid, p_actor jsonb, p_task_id uuid default null)
  returns jsonb
  language plpgsql
as $$
declare
  v_status text;
  v_actor jsonb := '{}';
begin
  select status into v_status from app.organizations where id = p_organization_id and deleted_at is null;
  if not found then
    perform app.fail(404, 'organization_not_found', 'Organization not found');
  end if;
  if p_actor ->> 'kind' = 'owner' then
    return v_actor;
  end if;
  if p_actor ->> 'kind' = 'capability' then
    v_actor := app.capability_actor(p_organization_id, p_actor ->> 'tokenHash', true);
    if v_actor is null then
      perform app.fail(401, 'agent_unauthorized', 'The execution capability is not valid');
    end if;
    if v_actor ->> 'mode' = 'verify'
       or v_actor ->> 'profileKind' = 'department' and not app.task_is_within(p_organization_id, p_task_id, (v_actor ->> 'taskId')::uuid) then
      perform app.fail(401, 'agent_unauthorized', 'The execution capability does not cover this change');
    end if;
  elsif p_actor ->> 'kind' is distinct from 'service' then
    raise exception 'unknown actor %', p_actor ->> 'kind';
  end if;
  if v_status = 'suspended' then
    perform app.fail(409, 'state_conflict', 'The organization is suspended');
  end if;
  return v_actor;
end
$$;

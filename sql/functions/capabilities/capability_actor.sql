-- The run to which the hash of an execution token belongs, or null if its lease has ended. p_lock: lock the request's row.
create or replace function app.capability_actor(p_organization_id uuid, p_token_hash text, p_lock boolean)
  returns jsonb
  language plpgsql
as $$
declare
  r app.run_requests;
  p app.agent_profiles;
begin
  if p_lock then
    select * into r from app.run_requests
      where organization_id = p_organization_id and execution_token_hash = p_token_hash and state = 'started'
      for no key update;
  else
    select * into r from app.run_requests
      where organization_id = p_organization_id and execution_token_hash = p_token_hash and state = 'started';
  end if;
  if not found or r.cancel_requested_at is not null or r.lease_expires_at <= clock_timestamp() then
    return null;
  end if;
  select * into p from app.agent_profiles where organization_id = p_organization_id and id = r.agent_profile_id;
  if p.status <> 'enabled' then
    return null;
  end if;
  return jsonb_build_object('organizationId', p_organization_id, 'agentProfileId', p.id, 'profileKind', p.kind,
    'runId', r.run_id, 'taskId', r.task_id, 'chatId', r.chat_id, 'messageId', r.message_id, 'mode', r.mode);
end
$$;

-- The response to run_start, the same for a repeat.
create or replace function app.run_start_response(r app.run_requests, p_execution_token text)
  returns jsonb
  language plpgsql stable
as $$
begin
  if r.kind = 'chat' then
    return jsonb_build_object('kind', 'chat_turn', 'organizationId', r.organization_id,
      'agentProfileId', r.agent_profile_id, 'chatId', r.chat_id, 'messageId', r.message_id, 'runRequestId', r.id,
      'runId', r.run_id, 'attempt', r.attempt, 'leaseExpiresAt', r.lease_expires_at,
      'executionToken', p_execution_token);
  end if;
  return jsonb_build_object('organizationId', r.organization_id, 'agentProfileId', r.agent_profile_id,
    'taskId', r.task_id, 'runRequestId', r.id, 'runId', r.run_id, 'attempt', r.attempt,
    'leaseExpiresAt', r.lease_expires_at, 'executionToken', p_execution_token);
end
$$;

-- The chats whose answers end when this profile does, for their streams to be told after the commit: [chat id].
create or replace function app.chats_with_open_turns(p_organization_id uuid, p_agent_profile_id uuid)
  returns jsonb
  language plpgsql stable
as $$
begin
  return (select coalesce(jsonb_agg(distinct chat_id), '[]') from app.run_requests
    where organization_id = p_organization_id and agent_profile_id = p_agent_profile_id and kind = 'chat'
      and state in ('published', 'leased', 'started'));
end
$$;

-- Ends all turns of a profile that is being disabled (chat_turn_end_unavailable). The caller has locked the profile, so no turn
-- is added. Waits for a pull that has claimed one and not committed yet.
-- Locks: (profile) → run requests → runs → messages.
create or replace function app.chat_turns_end_unavailable(p_organization_id uuid, p_agent_profile_id uuid)
  returns void
  language plpgsql
as $$
declare
  r app.run_requests;
begin
  for r in
    select * from app.run_requests
      where organization_id = p_organization_id and agent_profile_id = p_agent_profile_id and kind = 'chat'
        and state in ('published', 'leased', 'started')
      order by id for no key update
  loop
    perform app.chat_turn_end_unavailable(r);
  end loop;
end
$$;

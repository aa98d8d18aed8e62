-- Ends a turn that no worker has started within p_start_seconds: run request published | leased → cancelled; message pending →
-- failed with runtime_unavailable.
-- Called by the dispatch job. The time is checked under the lock, so an early or repeated call changes nothing.
-- Locks: run request → message → (commit) dispatch. Returns {outcome: unchanged | failed, chatId}.
create or replace function app.chat_turn_end_overdue(
  p_organization_id uuid, p_run_request_id uuid, p_start_seconds integer)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  r app.run_requests;
begin
  select * into r from app.run_requests
    where organization_id = p_organization_id and id = p_run_request_id for no key update;
  if not found or r.kind <> 'chat' or r.state not in ('published', 'leased')
     or r.created_at > clock_timestamp() - make_interval(secs => p_start_seconds) then
    return '{"outcome": "unchanged"}';
  end if;
  perform app.chat_turn_end_unavailable(r);
  return jsonb_build_object('outcome', 'failed', 'chatId', r.chat_id);
end
$$;

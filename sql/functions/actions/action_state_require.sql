-- Refuses a decision about an action that is in another state than p_status. One that has expired is refused in the same way whether
-- this decision or the job noticed it. The caller has locked the action. Codes: 409 state_conflict (decided, expired).
create or replace function app.action_state_require(a app.actions, p_status text)
  returns void
  language plpgsql
as $$
begin
  if a.status = 'expired' then
    perform app.fail(409, 'state_conflict', 'The action has expired', app.issue('actionId', 'expired', 'propose it again'));
  elsif a.status <> p_status then
    perform app.fail(409, 'state_conflict', format('The action is %s', a.status),
      app.issue('actionId', 'decided', format('is %s', a.status)));
  end if;
end
$$;

-- Refuses whoever does not hold the lease of an action. What was sent counts until another one takes the lease, also past its end:
-- nobody else has the provider's response. The caller has locked the action. Codes: 409 state_conflict (lease_taken).
create or replace function app.action_lease_require(a app.actions, p_lease_id uuid)
  returns void
  language plpgsql
as $$
begin
  if a.lease_id is distinct from p_lease_id then
    perform app.fail(409, 'state_conflict', 'The lease of the action is another one',
      app.issue('leaseId', 'lease_taken', 'another process goes on with it, or nobody has to'));
  end if;
end
$$;

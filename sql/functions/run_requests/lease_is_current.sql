-- Whether the token holds the lease of the request right now. Call it with the row locked. It compares with the clock, not with
-- now(), because the transaction may have waited for the lock.
create or replace function app.lease_is_current(r app.run_requests, p_lease_token text)
  returns boolean
  language plpgsql
as $$
begin
  return coalesce(r.state in ('leased', 'started')
    and p_lease_token = r.fence::text || '.' || split_part(p_lease_token, '.', 2)
    and r.lease_secret_hash = sha256(convert_to(split_part(p_lease_token, '.', 2), 'UTF8'))
    and r.lease_expires_at > clock_timestamp(), false);
end
$$;

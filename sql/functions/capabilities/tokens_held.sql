-- Which of the digests (SHA-256, hex) are of a token that somebody holds right now: the execution token of a run in any
-- organization, a capability of the gateway in any that has not expired, or the secret of a lease in this one;
-- p_organization_id null: in any, which reads every lease. Whether the run of a capability is under way is not asked: a late
-- log of a run that has just ended is refused too.
-- It tells about tokens that the caller has, and about nothing else. Locks: none. Returns {held: [digest]}.
create or replace function app.tokens_held(p_organization_id uuid, p_hashes text[])
  returns jsonb
  language sql stable security definer
as $$
  select jsonb_build_object('held', coalesce(jsonb_agg(h.hash), '[]'))
    from (
      select r.execution_token_hash as hash from app.run_requests r
        where r.state = 'started' and r.execution_token_hash = any (p_hashes)
      union
      select g.token_hash from app.integration_gateway_capabilities g
        where g.token_hash = any (p_hashes) and g.expires_at > clock_timestamp()
      union
      select encode(r.lease_secret_hash, 'hex') from app.run_requests r
        where (p_organization_id is null or r.organization_id = p_organization_id) and r.state in ('leased', 'started')
          and encode(r.lease_secret_hash, 'hex') = any (p_hashes)
    ) h
$$;

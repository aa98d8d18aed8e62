-- Takes an Idempotency-Key for the work of one call.
-- Without p_claim_id it is taken for the transaction that does the work. With one it is claimed for p_claim_seconds in a
-- transaction of its own, for work that does more than change the database: another call may take over a claim that ran out.
-- The same claim again: the same result.
-- Nobody waits for the work of another call: a second call gets inUse, and asks again.
-- Returns {fresh: true} | {replay: {statusCode, body}} | {inUse: true}. Codes: 409 idempotency_key_reused;
-- 404 organization_not_found (deleted: its responses are not sent again).
create or replace function app.idempotency_begin(
  p_organization_id uuid, p_caller text, p_method text, p_path text, p_key text, p_body_hash text,
  p_claim_id uuid default null, p_claim_seconds integer default null)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_until constant timestamptz := clock_timestamp() + make_interval(secs => p_claim_seconds);
  k app.idempotency_keys;
begin
  -- Held to the end of the transaction: by the call whose work is done in it, or for a moment by a claim.
  if not pg_try_advisory_xact_lock(hashtextextended(
      concat_ws(chr(10), p_organization_id, p_caller, p_method, p_path, p_key), 0)) then
    return '{"inUse": true}';
  end if;
  -- A key is free after 24 hours, also before the clean-up removes it.
  delete from app.idempotency_keys
    where organization_id = p_organization_id and caller = p_caller and method = p_method and path = p_path and key = p_key
      and created_at < now() - interval '24 hours';
  insert into app.idempotency_keys (organization_id, caller, method, path, key, body_hash, claim_id, claimed_until)
    values (p_organization_id, p_caller, p_method, p_path, p_key, p_body_hash, p_claim_id, v_until)
    on conflict do nothing;
  if found then
    return '{"fresh": true}';
  end if;
  select * into k from app.idempotency_keys
    where organization_id = p_organization_id and caller = p_caller and method = p_method and path = p_path and key = p_key
    for no key update;
  if not found then
    raise exception using errcode = '40001', message = 'the key was cleaned up meanwhile';
  end if;
  if k.body_hash <> p_body_hash then
    perform app.fail(409, 'idempotency_key_reused', 'This Idempotency-Key was used with another body',
      app.issue('Idempotency-Key', 'idempotency_key_reused', 'was used with another body'));
  end if;
  if k.status_code is not null then
    if exists (select from app.organizations where id = p_organization_id and deleted_at is not null) then
      perform app.fail(404, 'organization_not_found', 'Organization not found');
    end if;
    return jsonb_build_object('replay', jsonb_build_object('statusCode', k.status_code, 'body', k.response));
  end if;
  if k.claimed_until > clock_timestamp() and k.claim_id is distinct from p_claim_id then
    return '{"inUse": true}';
  end if;
  -- The 24 hours begin with the call that does the work.
  update app.idempotency_keys set claim_id = p_claim_id, claimed_until = v_until, created_at = now()
    where organization_id = p_organization_id and caller = p_caller and method = p_method and path = p_path and key = p_key;
  return '{"fresh": true}';
end
$$;

-- Takes an Idempotency-Key for the work of one call.
-- Without p_claim_seconds it is taken for the transaction that does the work. With them it is claimed in a transaction of its
-- own, by a claim that another call may take over once it has run out: for work that does more than change the database.
-- Nobody waits here: a second call hears that the key is in use, and asks again.
-- Returns {fresh: true} | {claimId} | {replay: {statusCode, body}} | {inUse: true}. Codes: 404 organization_not_found (deleted:
-- its answers are not given again), 409 idempotency_key_reused.
create or replace function app.idempotency_begin(
  p_organization_id uuid, p_caller text, p_method text, p_path text, p_key text, p_body_hash text,
  p_claim_seconds integer default null)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_claim_id constant uuid := case when p_claim_seconds is not null then gen_random_uuid() end;
  v_until constant timestamptz := clock_timestamp() + make_interval(secs => p_claim_seconds);
  k app.idempotency_keys;
begin
  -- Held to the end of the transaction: by the call whose work is done in it, or for a moment by a claim.
  if not pg_try_advisory_xact_lock(hashtextextended(
      concat_ws(chr(10), p_organization_id, p_caller, p_method, p_path, p_key), 0)) then
    return '{"inUse": true}';
  end if;
  if exists (select from app.organizations where id = p_organization_id and deleted_at is not null) then
    perform app.fail(404, 'organization_not_found', 'Organization not found');
  end if;
  -- One that has had its day is as good as none, also before the clean-up.
  delete from app.idempotency_keys
    where organization_id = p_organization_id and caller = p_caller and method = p_method and path = p_path and key = p_key
      and created_at < now() - interval '24 hours';
  insert into app.idempotency_keys (organization_id, caller, method, path, key, body_hash, claim_id, claimed_until)
    values (p_organization_id, p_caller, p_method, p_path, p_key, p_body_hash, v_claim_id,
      case when v_claim_id is not null then v_until end)
    on conflict do nothing;
  if not found then
    select * into k from app.idempotency_keys
      where organization_id = p_organization_id and caller = p_caller and method = p_method and path = p_path and key = p_key
      for no key update;
    if not found then
      raise exception using errcode = '40001', message = 'the key was cleaned up meanwhile';
    end if;
    if k.body_hash <> p_body_hash then
      perform app.fail(409, 'idempotency_key_reused', 'This Idempotency-Key was used with another body');
    end if;
    if k.status_code is not null then
      return jsonb_build_object('replay', jsonb_build_object('statusCode', k.status_code, 'body', k.answer));
    end if;
    if k.claimed_until > clock_timestamp() then
      return '{"inUse": true}';
    end if;
    update app.idempotency_keys
      set claim_id = v_claim_id, claimed_until = case when v_claim_id is not null then v_until end
      where organization_id = p_organization_id and caller = p_caller and method = p_method and path = p_path and key = p_key;
  end if;
  if v_claim_id is null then
    return '{"fresh": true}';
  end if;
  return jsonb_build_object('claimId', v_claim_id);
end
$$;

-- Claims an Idempotency-Key at the start of the transaction that does the work. A second call with the key waits here until the
-- first commits, and gets its response; if the first was rolled back, it proceeds itself.
-- Returns {fresh: true} | {replay: {statusCode, body}}. Codes: 409 idempotency_key_reused.
create or replace function app.idempotency_begin(
  p_organization_id uuid, p_caller text, p_method text, p_path text, p_key text, p_body_hash text)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  k app.idempotency_keys;
begin
  -- An expired key does not count, even before the cleanup.
  delete from app.idempotency_keys
    where organization_id = p_organization_id and caller = p_caller and method = p_method and path = p_path and key = p_key
      and created_at < now() - interval '24 hours';
  insert into app.idempotency_keys (organization_id, caller, method, path, key, body_hash)
    values (p_organization_id, p_caller, p_method, p_path, p_key, p_body_hash)
    on conflict do nothing;
  if found then
    return '{"fresh": true}';
  end if;
  select * into k from app.idempotency_keys
    where organization_id = p_organization_id and caller = p_caller and method = p_method and path = p_path and key = p_key;
  if not found then
    raise exception using errcode = '40001', message = 'the key was cleaned up meanwhile';
  end if;
  if k.body_hash <> p_body_hash then
    perform app.fail(409, 'idempotency_key_reused', 'This Idempotency-Key was used with another body');
  end if;
  return jsonb_build_object('replay', jsonb_build_object('statusCode', k.status_code, 'body', k.answer));
end
$$;

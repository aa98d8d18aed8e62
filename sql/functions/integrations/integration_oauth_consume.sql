-- Flow begun → consumed, once: its secrets are handed out and gone. p_browser_hash: of the cookie of the browser that came back;
-- p_starter: the person of its session, null without one. In another browser, or by another person, nothing changes: the right one
-- may still come. Past its end it is over. p_provider: whose address the browser came to. At another provider's nobody knows the flow,
-- which stays for its own.
-- Returns {flow, outcome, sealed?}. outcome: consumed (sealed is there, or null where the flow has no secrets) | repeat (flow.result
-- says how it ended; null: it is ending, or the process that ended it has died) | expired | foreign.
-- flow null: unknown. Locks: flow.
create or replace function app.integration_oauth_consume(
  p_organization_id uuid, p_flow_id uuid, p_provider text, p_browser_hash text, p_starter text)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_sealed jsonb;
  o app.integration_oauth_states;
begin
  select * into o from app.integration_oauth_states
    where organization_id = p_organization_id and id = p_flow_id for no key update;
  if not found or o.browser_hash is null or not exists (select from app.integrations
      where organization_id = p_organization_id and id = o.integration_id and provider = p_provider) then
    return '{"flow": null, "outcome": "expired"}';
  end if;
  if o.browser_hash is distinct from p_browser_hash
     or o.starter is not null and p_starter is not null and o.starter <> p_starter then
    return jsonb_build_object('flow', app.integration_oauth_flow(o), 'outcome', 'foreign');
  end if;
  if o.consumed_at is not null then
    return jsonb_build_object('flow', app.integration_oauth_flow(o), 'outcome', 'repeat');
  end if;
  if o.key_id is not null then
    v_sealed := jsonb_build_object('keyId', o.key_id, 'wrappedKey', translate(encode(o.wrapped_key, 'base64'), E'\n', ''),
      'ciphertext', translate(encode(o.ciphertext, 'base64'), E'\n', ''));
  end if;
  update app.integration_oauth_states
    set consumed_at = clock_timestamp(), key_id = null, wrapped_key = null, ciphertext = null,
      result = case when expires_at <= clock_timestamp() then 'expired' end
    where organization_id = p_organization_id and id = o.id
    returning * into o;
  if o.result is not null then
    return jsonb_build_object('flow', app.integration_oauth_flow(o), 'outcome', 'expired');
  end if;
  return jsonb_build_object('flow', app.integration_oauth_flow(o), 'outcome', 'consumed', 'sealed', v_sealed);
end
$$;

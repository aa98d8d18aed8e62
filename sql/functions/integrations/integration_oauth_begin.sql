-- Flow started → begun: the button of its page sends this browser to the provider. The ticket is gone with it. p_begin: {browserHash,
-- stateHash, requestTokenHash?, sealed?: {keyId, wrappedKey, ciphertext}}, bytes as base64, bound to the captured revision.
-- Returns {flow}, flow null for a ticket that is unknown, used or past its end: of two that use it at once, one begins.
-- Locks: flow.
create or replace function app.integration_oauth_begin(p_organization_id uuid, p_ticket_hash text, p_begin jsonb)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  o app.integration_oauth_states;
begin
  select * into o from app.integration_oauth_states
    where organization_id = p_organization_id and ticket_hash = p_ticket_hash for no key update;
  if not found or o.expires_at <= clock_timestamp() then
    return '{"flow": null}';
  end if;
  update app.integration_oauth_states
    set ticket_hash = null, browser_hash = p_begin ->> 'browserHash', state_hash = p_begin ->> 'stateHash',
      request_token_hash = p_begin ->> 'requestTokenHash', key_id = p_begin #>> '{sealed,keyId}',
      wrapped_key = decode(p_begin #>> '{sealed,wrappedKey}', 'base64'),
      ciphertext = decode(p_begin #>> '{sealed,ciphertext}', 'base64')
    where organization_id = p_organization_id and id = o.id
    returning * into o;
  return jsonb_build_object('flow', app.integration_oauth_flow(o));
end
$$;

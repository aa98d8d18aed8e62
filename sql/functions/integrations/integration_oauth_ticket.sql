-- What the page that begins a flow shows. Changes nothing: the button does. Returns {flow, clientInDoubt}, flow null for a ticket that
-- is unknown, used or past its end. clientInDoubt: the server may no longer know the client that it has registered. It said so at a
-- refresh, or an earlier flow from the same connection failed, or nobody came back from that one. Locks: none.
create or replace function app.integration_oauth_ticket(p_organization_id uuid, p_ticket_hash text)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  o app.integration_oauth_states;
begin
  select * into o from app.integration_oauth_states
    where organization_id = p_organization_id and ticket_hash = p_ticket_hash and expires_at > clock_timestamp();
  return jsonb_build_object('flow', app.integration_oauth_flow(o), 'clientInDoubt', exists(
    select from app.integration_connections c
      where c.organization_id = p_organization_id and c.integration_id = o.integration_id
        and c.reauthorization_reason = 'client_refused') or exists(
    select from app.integration_oauth_states e
      where e.organization_id = p_organization_id and e.integration_id = o.integration_id and e.id <> o.id
        and e.connection_revision = o.connection_revision and e.connected_at is not distinct from o.connected_at
        and e.browser_hash is not null
        and (e.result = 'failed' or e.result is null and e.expires_at <= clock_timestamp())));
end
$$;

-- Flow (none) → started, for ten minutes: it captures the connection revision, and when the connection was authorized last, which
-- its end compares. p_flow: {ticketHash, services, accessMode, replaceAccount, starter}. There is no secret yet but the ticket, of
-- which the digest is stored. Others that are under way stay: whichever ends first connects, and the next ends in a conflict.
-- Returns {flow: {id, expiresAt, connectionRevision, integrationId}}.
-- Locks: integration. Codes: 403 provider_forbidden, 404 organization_not_found | integration_not_found.
create or replace function app.integration_oauth_start(p_organization_id uuid, p_integration_ref text, p_flow jsonb)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  i app.integrations := app.integration_lock(p_organization_id, p_integration_ref, false);
  o app.integration_oauth_states;
begin
  perform app.integration_provider_require(p_organization_id, i.provider);
  insert into app.integration_oauth_states (organization_id, integration_id, connection_revision, connected_at, ticket_hash,
      services, access_mode, replace_account, starter, expires_at)
    values (p_organization_id, i.id, i.connection_revision,
      (select connected_at from app.integration_connections where organization_id = p_organization_id and integration_id = i.id),
      p_flow ->> 'ticketHash', coalesce(p_flow -> 'services', '[]'),
      p_flow ->> 'accessMode', (p_flow ->> 'replaceAccount')::boolean, p_flow ->> 'starter',
      clock_timestamp() + interval '10 minutes')
    returning * into o;
  return jsonb_build_object('flow', jsonb_build_object('id', o.id, 'expiresAt', o.expires_at,
    'connectionRevision', o.connection_revision, 'integrationId', i.id));
end
$$;

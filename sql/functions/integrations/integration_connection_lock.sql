-- Locks the connection whose tokens the caller exchanges, and refuses what it must not do any more. The caller has locked the
-- integration. Those of a disabled one are exchanged too: it is looked at, and enabling it would find dead ones. Codes: 409
-- integration_conflict (another connection) | integration_not_ready (not_connected, needs_reauthorization).
create or replace function app.integration_connection_lock(i app.integrations, p_connection_revision integer)
  returns app.integration_connections
  language plpgsql
as $$
declare
  v_reason text;
  c app.integration_connections;
begin
  perform app.integration_revision_require(i, p_connection_revision);
  select * into c from app.integration_connections
    where organization_id = i.organization_id and integration_id = i.id for no key update;
  v_reason := case
    when c.integration_id is null then 'not_connected'
    when c.reauthorization_reason is not null then 'needs_reauthorization' end;
  if v_reason is not null then
    perform app.fail(409, 'integration_not_ready', 'The integration cannot be used as it is',
      app.issue('connection', v_reason, 'connect or authorize it first'));
  end if;
  return c;
end
$$;

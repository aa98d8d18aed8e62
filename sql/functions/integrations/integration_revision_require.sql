-- Refuses a change that was prepared for another connection than the current one. Codes: 409 integration_conflict.
create or replace function app.integration_revision_require(i app.integrations, p_connection_revision integer)
  returns void
  language plpgsql
as $$
begin
  if i.connection_revision is distinct from p_connection_revision then
    perform app.fail(409, 'integration_conflict', 'The connection has changed meanwhile: read the integration, and try again',
      app.issue('connection', 'revision_moved', format('the connection is at revision %s', i.connection_revision)));
  end if;
end
$$;

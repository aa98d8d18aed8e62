-- The revision that a connection has once it is written. The same account, connected in the same way, with scopes that cover the
-- enabled tools, is no replacement: the revision stays, and nothing that waits is cancelled. c: the connection so far, null
-- without one. p_connection: {kind, subjectHash, grantedScopes?}.
create or replace function app.integration_next_revision(
  i app.integrations, c app.integration_connections, p_connection jsonb)
  returns integer
  language sql stable
as $$
  select case
    when c.integration_id is not null and c.kind = p_connection ->> 'kind'
      and c.subject_hash is not distinct from p_connection ->> 'subjectHash'
      and not exists (
        select from app.integration_tools t
          where t.organization_id = i.organization_id and t.integration_id = i.id and t.enabled
            and not app.integration_scopes_cover(nullif(p_connection -> 'grantedScopes', 'null'), t.required_scopes))
    then i.connection_revision else i.connection_revision + 1 end
$$;

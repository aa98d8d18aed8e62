-- A flow as the pages and callbacks of an authorization see it: with names, and without digests and secrets.
create or replace function app.integration_oauth_flow(o app.integration_oauth_states)
  returns jsonb
  language sql stable
as $$
  select jsonb_build_object('id', o.id, 'organizationId', o.organization_id, 'organizationName', g.name,
      'integrationId', o.integration_id, 'integrationKey', i.key, 'provider', i.provider,
      'connectionRevision', o.connection_revision, 'services', o.services, 'accessMode', o.access_mode,
      'replaceAccount', o.replace_account, 'starter', o.starter, 'expiresAt', o.expires_at, 'result', o.result)
    from app.integrations i
    join app.organizations g on g.id = i.organization_id
    where i.organization_id = o.organization_id and i.id = o.integration_id and g.deleted_at is null
$$;

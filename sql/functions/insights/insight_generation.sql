-- What a unit is claimed for: connection, scope, what agents may do, adapter and schema (docs/interface.md 2.14). SHA-256, in hex; under
-- another one the unit commits nothing.
create or replace function app.insight_generation(
  i app.integrations, p_authorization_epoch integer, p_adapter_version integer, p_schema_version integer)
  returns text
  language sql immutable
as $$
  select encode(sha256(convert_to(jsonb_build_array(i.connection_revision, app.insight_scope(i), p_authorization_epoch,
    p_adapter_version, p_schema_version)::text, 'UTF8')), 'hex')
$$;

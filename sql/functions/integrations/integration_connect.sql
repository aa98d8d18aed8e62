-- not_connected | connected → connected, by a credential that the provider has accepted (docs/interface.md 3.9). p_revision: the
-- connection revision that the caller has read; p_next_revision: what integration_connection_plan said, and the secrets are bound
-- to. The same account keeps the revision; another one needs p_replace_account. p_connection, p_secrets: see
-- integration_connection_write. Returns {integration}.
-- Locks: organization → integration → connection. Codes: 403 provider_forbidden, 404 organization_not_found |
-- integration_not_found, 409 integration_conflict (the connection has changed) | integration_account_differs.
create or replace function app.integration_connect(
  p_organization_id uuid, p_integration_ref text, p_revision integer, p_next_revision integer, p_connection jsonb,
  p_secrets jsonb, p_replace_account boolean)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_refused text;
  i app.integrations := app.integration_lock(p_organization_id, p_integration_ref, true);
begin
  perform app.integration_provider_require(p_organization_id, i.provider);
  perform app.integration_revision_require(i, p_revision);
  v_refused := app.integration_connection_write(i, p_next_revision, p_connection, p_secrets, p_replace_account) ->> 'refused';
  if v_refused = 'account_differs' then
    perform app.fail(409, 'integration_account_differs', 'The credential is of another account than the connected one',
      app.issue('replaceAccount', 'account_differs', 'say true to connect the other account instead'));
  elsif v_refused is not null then
    perform app.fail(409, 'integration_conflict', 'The integration has changed meanwhile: try again',
      app.issue('connection', v_refused, 'was prepared for another state of the integration'));
  end if;
  select * into i from app.integrations where organization_id = p_organization_id and id = i.id;
  return jsonb_build_object('integration', app.integration_record(i));
end
$$;

-- Writes the connection of an integration, with its secrets. p_connection: {kind, accountLabel, subjectHash, grantedScopes?,
-- grantHash?, tokenExpiresAt?, refreshDueAt?, reuseRefreshToken?}. p_secrets: [{field, keyId, wrappedKey, ciphertext}], bytes as base64,
-- bound to p_next_revision. reuseRefreshToken: the provider gave none; the stored one stays, if it is of the same
-- account and bound to the same revision. Another revision cancels what awaits or has an approval. The caller has locked organization
-- and integration.
-- Returns {}, or {refused: …} having changed nothing: account_differs, revision_moved, no_refresh_token.
create or replace function app.integration_connection_write(
  i app.integrations, p_next_revision integer, p_connection jsonb, p_secrets jsonb, p_replace_account boolean)
  returns jsonb
  language plpgsql
as $$
declare
  v_reuse constant boolean := coalesce((p_connection ->> 'reuseRefreshToken')::boolean, false);
  c app.integration_connections;
begin
  select * into c from app.integration_connections
    where organization_id = i.organization_id and integration_id = i.id for no key update;
  if c.integration_id is not null and c.subject_hash is distinct from p_connection ->> 'subjectHash'
     and not p_replace_account then
    return '{"refused": "account_differs"}';
  end if;
  if app.integration_next_revision(i, c, p_connection) <> p_next_revision then
    return '{"refused": "revision_moved"}';
  end if;
  if v_reuse and (p_next_revision <> i.connection_revision or not exists (
      select from app.integration_secrets s
        where s.organization_id = i.organization_id and s.integration_id = i.id and s.field = 'refresh_token'
          and s.revision = p_next_revision)) then
    return '{"refused": "no_refresh_token"}';
  end if;
  insert into app.integration_connections as k (organization_id, integration_id, kind, account_label, subject_hash,
      granted_scopes, grant_hash, connected_at, token_expires_at, refresh_due_at, checked_at, check_due_at)
    values (i.organization_id, i.id, p_connection ->> 'kind', p_connection ->> 'accountLabel', p_connection ->> 'subjectHash',
      nullif(p_connection -> 'grantedScopes', 'null'), p_connection ->> 'grantHash', clock_timestamp(),
      (p_connection ->> 'tokenExpiresAt')::timestamptz, (p_connection ->> 'refreshDueAt')::timestamptz, clock_timestamp(),
      -- A day later, spread out: what was connected together is not looked at together.
      clock_timestamp() + interval '1 day' * (0.8 + random() * 0.4))
    on conflict (organization_id, integration_id) do update
      set kind = excluded.kind, account_label = excluded.account_label, subject_hash = excluded.subject_hash,
        granted_scopes = excluded.granted_scopes, missing_scopes = '[]', grant_hash = excluded.grant_hash,
        connected_at = excluded.connected_at,
        -- A refresh of the tokens of before, under way, loses.
        token_version = k.token_version + 1, refresh_lease_id = null, refresh_lease_expires_at = null,
        token_expires_at = excluded.token_expires_at, refresh_due_at = excluded.refresh_due_at,
        reauthorization_reason = null, reauthorization_at = null, degraded_at = null, degraded_code = null,
        checked_at = excluded.checked_at, check_due_at = excluded.check_due_at;
  delete from app.integration_secrets
    where organization_id = i.organization_id and integration_id = i.id and not (v_reuse and field = 'refresh_token');
  perform app.integration_secrets_write(i.organization_id, i.id, p_next_revision, p_secrets);
  update app.integrations set connection_revision = p_next_revision, updated_at = clock_timestamp()
    where organization_id = i.organization_id and id = i.id;
  if p_next_revision <> i.connection_revision then
    perform app.actions_cancel_of_integrations(i.organization_id, array[i.id]);
  end if;
  return '{}';
end
$$;

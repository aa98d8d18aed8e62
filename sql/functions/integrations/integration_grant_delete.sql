-- After an authorization was revoked at its provider, or could not be: unlinks what the caller has found of its own organization, and
-- of all others marks what hangs on it as needs_reauthorization (only if p_revoked). p_connections: [{id, revision}], as
-- integration_grant_read gave them. p_began_at: readAt of that, before the provider was asked; what was connected later has another
-- authorization.
-- Reads all tenants to find them, acts on each by a transition of that tenant, and names none of them.
-- Returns {unlinked: [{id, key}], changedMeanwhile: [{id, key}], otherOrganizations, integrationId, seen}: integrationId is the first
-- of p_connections, seen what the audit log keeps: {revoked, unlinked: [key], changedMeanwhile: [key], otherOrganizations}.
-- Locks: organizations by id, each with its integrations by id → connections. Codes: 404 organization_not_found.
create or replace function app.integration_grant_delete(
  p_organization_id uuid, p_grant_hash text, p_connections jsonb, p_revoked boolean, p_began_at timestamptz)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_id uuid;
  v_result jsonb;
  v_others integer := 0;
begin
  for v_id in
    select k.organization_id from app.integration_connections k
      where k.grant_hash = p_grant_hash and p_revoked and k.organization_id <> p_organization_id
    union
    select p_organization_id
    order by 1
  loop
    if v_id = p_organization_id then
      v_result := app.integration_grant_unlink(v_id, p_grant_hash, p_connections, p_began_at);
    elsif app.integration_grant_withdraw(v_id, p_grant_hash, p_began_at) then
      v_others := v_others + 1;
    end if;
  end loop;
  v_result := v_result || jsonb_build_object('otherOrganizations', v_others);
  return v_result || jsonb_build_object('integrationId', p_connections #>> '{0,id}', 'seen', v_result || jsonb_build_object(
    'revoked', p_revoked,
    'unlinked', jsonb_path_query_array(v_result, '$.unlinked[*].key'),
    'changedMeanwhile', jsonb_path_query_array(v_result, '$.changedMeanwhile[*].key')));
end
$$;

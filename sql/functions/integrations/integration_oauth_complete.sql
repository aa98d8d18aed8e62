-- Flow consumed → connected | conflict | failed, with the connection, in one transaction. The integration's lock comes first, the
-- captured revision has to be the current one, and nothing may have been authorized since: an old tab neither restores what was
-- disconnected or replaced, nor overwrites a newer authorization. p_next_revision, p_connection, p_secrets: see integration_connect.
-- Services and access mode become those of the flow; tools that write are off without full access. Another account without
-- replaceAccount is a conflict. A provider that is not allowed any more is a failure, and so is no refresh token, neither new nor
-- stored of the same account. One that is over keeps its result. The connection leaves the audit entry of whoever began it.
-- Returns {flow, integration?}.
-- Locks: organization → integration → flow → connection. Codes: 404 organization_not_found | integration_not_found | not_found.
create or replace function app.integration_oauth_complete(
  p_organization_id uuid, p_integration_id uuid, p_flow_id uuid, p_next_revision integer, p_connection jsonb, p_secrets jsonb)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_refused text;
  v_result text;
  v_connected_at timestamptz;
  i app.integrations := app.integration_lock(p_organization_id, p_integration_id::text, true);
  o app.integration_oauth_states;
begin
  select * into o from app.integration_oauth_states
    where organization_id = p_organization_id and id = p_flow_id and integration_id = i.id for no key update;
  if not found then
    perform app.fail(404, 'not_found', 'There is no such authorization under way');
  end if;
  if o.consumed_at is null or o.result is not null then
    return jsonb_build_object('flow', app.integration_oauth_flow(o));
  end if;
  select connected_at into v_connected_at from app.integration_connections
    where organization_id = p_organization_id and integration_id = i.id for no key update;
  if o.connection_revision <> i.connection_revision or o.connected_at is distinct from v_connected_at then
    v_refused := 'revision_moved';
  elsif not app.integration_provider_allowed(p_organization_id, i.provider) then
    v_refused := 'provider_forbidden';
  else
    v_refused := app.integration_connection_write(i, p_next_revision, p_connection, p_secrets, o.replace_account) ->> 'refused';
  end if;
  v_result := case when v_refused is null then 'connected'
    when v_refused in ('no_refresh_token', 'provider_forbidden') then 'failed' else 'conflict' end;
  if v_result = 'connected' then
    update app.integrations set services = o.services, access_mode = o.access_mode, updated_at = clock_timestamp()
      where organization_id = p_organization_id and id = i.id
      returning * into i;
    update app.integration_tools set enabled = false
      where organization_id = p_organization_id and integration_id = i.id and enabled and effect = 'write'
        and i.access_mode = 'read_only';
    perform app.audit_append(p_organization_id, case when o.starter is null then 'operator' else 'owner' end,
      coalesce(o.starter, 'authorization'), 'integration.connect', 'integration', i.id::text,
      jsonb_build_object('kind', p_connection ->> 'kind', 'services', o.services, 'accessMode', o.access_mode,
        'replaceAccount', o.replace_account));
  end if;
  update app.integration_oauth_states set result = v_result
    where organization_id = p_organization_id and id = o.id
    returning * into o;
  return jsonb_build_object('flow', app.integration_oauth_flow(o), 'integration', app.integration_record(i));
end
$$;

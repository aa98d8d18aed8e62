-- Unit leased → committed: what a connector has facts of, as its provider and its settings say. p_sources: [{dataset, resourceId,
-- environment, timezone (null: the provider has none), adapter, schema, modes: [{mode, dueInSeconds}]}]. A new one is due at once; one
-- whose settings have changed begins anew, and keeps what is published; one that is no longer named is not read any more. Of two
-- connections that reach one source the one collects it that was there first, as long as it may be used.
-- p_next_seconds: until they are looked for again. A unit that was claimed for another generation changes nothing: → discarded.
-- A repeat changes nothing. Returns {committed, sources}.
-- Locks: as insight_unit_lock → sources. Codes: 409 state_conflict (lease_taken).
create or replace function app.insight_sources_put(
  p_organization_id uuid, p_unit_id uuid, p_fence bigint, p_sources jsonb, p_next_seconds integer)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  u app.insight_units := app.insight_unit_lock(p_organization_id, p_unit_id, p_fence);
  v_now constant timestamptz := clock_timestamp();
  v_account text;
  v_named uuid[] := '{}';
  v_source jsonb;
  o app.organizations;
  i app.integrations;
  c app.integration_connections;
  s app.insight_sources;
begin
  if u.state <> 'leased' then
    return jsonb_build_object('committed', u.state = 'committed', 'sources', 0);
  end if;
  select * into o from app.organizations where id = p_organization_id;
  select * into i from app.integrations where organization_id = p_organization_id and id = u.integration_id;
  select * into c from app.integration_connections where organization_id = p_organization_id and integration_id = i.id;
  if u.generation_digest <> app.insight_generation(i, o.authorization_epoch, 0, 0) or c.subject_hash is null then
    perform app.insight_unit_end(u, 'discarded');
    perform app.insight_connector_settle(p_organization_id, u.integration_id);
    return '{"committed": false, "sources": 0}';
  end if;
  v_account := encode(sha256(convert_to(p_organization_id || ':' || c.subject_hash, 'UTF8')), 'hex');
  for v_source in select x.value from jsonb_array_elements(p_sources) x order by x.value ->> 'dataset', x.value ->> 'resourceId' loop
    -- Without a zone of the provider it keeps the one that it was given first.
    select * into s from app.insight_sources
      where organization_id = p_organization_id and provider = i.provider and account_id = v_account
        and resource_id = v_source ->> 'resourceId' and dataset = v_source ->> 'dataset'
        and environment = v_source ->> 'environment' and timezone = coalesce(v_source ->> 'timezone', timezone)
      order by created_at limit 1
      for no key update;
    if s.id is null then
      insert into app.insight_sources (organization_id, integration_id, connector_key, provider, account_id, resource_id, dataset,
          environment, timezone, connection_revision, scope_digest, authorization_epoch, adapter_version, schema_version)
        values (p_organization_id, i.id, i.key, i.provider, v_account, v_source ->> 'resourceId', v_source ->> 'dataset',
          v_source ->> 'environment', coalesce(v_source ->> 'timezone', o.config ->> 'timezone', 'UTC'), i.connection_revision,
          app.insight_scope(i), o.authorization_epoch, (v_source ->> 'adapter')::integer, (v_source ->> 'schema')::integer)
        returning * into s;
      perform app.insight_rounds_begin(p_organization_id, s.id, v_source -> 'modes');
    elsif s.integration_id is distinct from i.id and s.in_scope and exists (
        select from app.integrations j
          join app.integration_connections d on d.organization_id = j.organization_id and d.integration_id = j.id
          where j.organization_id = p_organization_id and j.id = s.integration_id and (j.created_at, j.id) < (i.created_at, i.id)
            and d.subject_hash = c.subject_hash
            and app.integration_unavailable(j, d, null, o.constraints -> 'allowedIntegrations') is null) then
      continue;
    else
      if s.scope_digest <> app.insight_scope(i) then
        perform app.insight_rounds_begin(p_organization_id, s.id, v_source -> 'modes');
      end if;
      update app.insight_sources
        set integration_id = i.id, connector_key = i.key, in_scope = true, scope_digest = app.insight_scope(i),
          generation = generation + (scope_digest <> app.insight_scope(i))::integer, updated_at = v_now
        where organization_id = p_organization_id and id = s.id
          and (integration_id, connector_key, in_scope, scope_digest) is distinct from (i.id, i.key, true, app.insight_scope(i));
    end if;
    v_named := v_named || s.id;
  end loop;
  update app.insight_sources set in_scope = false, updated_at = v_now
    where organization_id = p_organization_id and integration_id = i.id and in_scope and id <> all (v_named);
  update app.insight_connectors
    set discovered_at = v_now, discovered_revision = i.connection_revision, discovered_scope = app.insight_scope(i),
      discovery_due_at = v_now + make_interval(secs => p_next_seconds), failure_count = 0, last_error = null
    where organization_id = p_organization_id and integration_id = i.id;
  perform app.insight_unit_end(u, 'committed', jsonb_build_object('records', jsonb_array_length(p_sources)));
  perform app.insight_connector_settle(p_organization_id, i.id);
  return jsonb_build_object('committed', true, 'sources', cardinality(v_named));
end
$$;

-- Claims a unit of a connector that is due: the search for its sources, else a cursor of one of them; the tail comes before the past, that
-- before a rescan, and of equal ones who waited longest. Leased for p_seconds; a lease that has ended is over: its unit has
-- expired, and what it began counts as failed.
-- p_adapters: {provider: {dataset: {adapter, schema, modes: [{mode, dueInSeconds}]}}}, as this process knows them. Other datasets
-- are left; one with another version or schema than its source had begins anew. p_active: as many units at once has an organization.
-- Returns {claimed: true, unit: {id, fence, mode, provider, leaseExpiresAt, connectionRevision, source, cursor, round}} or {claimed: false,
-- reason: gone | leased | paused | unavailable | busy | nothing}; a connector that may not be used is not due until that changes, one of
-- a suspended organization is looked at again in five minutes, of one that forbids the provider in an hour, as is one of whose provider
-- this process knows no datasets: a later version may.
-- Locks: organization, integration, connection (shared) → connector → source → head.
create or replace function app.insight_unit_claim(
  p_organization_id uuid, p_integration_id uuid, p_adapters jsonb, p_active integer, p_seconds integer)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_unit_id constant uuid := app.uuid_v7();
  v_now timestamptz;
  v_refusal text;
  v_obstacle text;
  v_mode text := 'discovery';
  v_adapters jsonb;
  v_adapter jsonb;
  o app.organizations;
  i app.integrations;
  c app.integration_connections;
  k app.insight_connectors;
  u app.insight_units;
  s app.insight_sources;
  r app.insight_cursors;
begin
  select * into o from app.organizations where id = p_organization_id and deleted_at is null for share;
  select * into i from app.integrations where organization_id = p_organization_id and id = p_integration_id for share;
  select * into c from app.integration_connections
    where organization_id = p_organization_id and integration_id = p_integration_id for share;
  select * into k from app.insight_connectors
    where organization_id = p_organization_id and integration_id = p_integration_id for no key update;
  v_now := clock_timestamp();
  v_adapters := coalesce(p_adapters -> i.provider, '{}');
  if o.id is null or k.integration_id is null then
    return '{"claimed": false, "reason": "gone"}';
  elsif k.lease_expires_at > v_now then
    return '{"claimed": false, "reason": "leased"}';
  end if;
  if k.unit_id is not null then
    select * into u from app.insight_units where organization_id = p_organization_id and id = k.unit_id;
    perform app.insight_unit_failed(u, 'expired', '{"code": "lease_expired", "message": "It did not end in time"}', null);
    select * into k from app.insight_connectors where organization_id = p_organization_id and integration_id = p_integration_id;
  end if;

  v_obstacle := app.integration_unavailable(i, c, null, o.constraints -> 'allowedIntegrations');
  v_refusal := case
    when o.status = 'suspended' then 'paused'
    when v_adapters = '{}' then 'nothing'
    when v_obstacle is not null then 'unavailable' end;
  if v_refusal is not null then
    update app.insight_connectors
      set due_at = case when v_refusal = 'paused' then v_now + interval '5 minutes'
          when v_refusal = 'nothing' or v_obstacle = 'provider_forbidden' then v_now + interval '1 hour' end
      where organization_id = p_organization_id and integration_id = p_integration_id;
    return jsonb_build_object('claimed', false, 'reason', v_refusal);
  end if;

  if k.due_at is null or k.due_at > v_now then
    return '{"claimed": false, "reason": "nothing"}';
  end if;
  if k.discovered_at is null or k.discovery_due_at <= v_now or k.discovered_revision <> i.connection_revision
     or k.discovered_scope <> app.insight_scope(i) then
    -- One that failed waits, and its sources with it: what they are is not known. Whatever changes them makes it due.
    if k.discovery_due_at > v_now then
      update app.insight_connectors set due_at = k.discovery_due_at
        where organization_id = p_organization_id and integration_id = p_integration_id;
      return '{"claimed": false, "reason": "nothing"}';
    end if;
  else
    select x.* into r from app.insight_cursors x
      join app.insight_sources y on y.organization_id = x.organization_id and y.id = x.source_id
      where x.organization_id = p_organization_id and y.integration_id = p_integration_id and y.in_scope and x.due_at <= v_now
        and v_adapters ? y.dataset
      order by array_position(array['tail', 'backfill', 'rescan'], x.mode::text), x.claimed_at nulls first, x.due_at, x.source_id
      limit 1;
    if r.source_id is null then
      -- What is due is of datasets that this process does not know, or was moved meanwhile.
      perform app.insight_connector_settle(p_organization_id, p_integration_id);
      update app.insight_connectors set due_at = v_now + interval '1 minute'
        where organization_id = p_organization_id and integration_id = p_integration_id and due_at <= v_now;
      return '{"claimed": false, "reason": "nothing"}';
    end if;
    v_mode := r.mode;
    select * into s from app.insight_sources where organization_id = p_organization_id and id = r.source_id for no key update;
    v_adapter := v_adapters -> s.dataset;
  end if;

  insert into app.insight_heads (organization_id) values (p_organization_id) on conflict do nothing;
  perform 1 from app.insight_heads where organization_id = p_organization_id for no key update;
  if (select count(*) from app.insight_connectors
        where organization_id = p_organization_id and lease_expires_at > v_now) >= p_active then
    return '{"claimed": false, "reason": "busy"}';
  end if;

  if s.id is not null then
    if (s.adapter_version, s.schema_version)
       is distinct from ((v_adapter ->> 'adapter')::integer, (v_adapter ->> 'schema')::integer) then
      perform app.insight_rounds_begin(p_organization_id, s.id, v_adapter -> 'modes');
      v_mode := 'tail';
    end if;
    if (s.connection_revision, s.authorization_epoch, s.adapter_version, s.schema_version) is distinct from
       (i.connection_revision, o.authorization_epoch, (v_adapter ->> 'adapter')::integer, (v_adapter ->> 'schema')::integer) then
      update app.insight_sources
        set generation = generation + 1, connection_revision = i.connection_revision,
          authorization_epoch = o.authorization_epoch, adapter_version = (v_adapter ->> 'adapter')::integer,
          schema_version = (v_adapter ->> 'schema')::integer, connector_key = i.key, updated_at = v_now
        where organization_id = p_organization_id and id = s.id;
    end if;
    select * into s from app.insight_sources where organization_id = p_organization_id and id = s.id;
    update app.insight_cursors set claimed_at = v_now
      where organization_id = p_organization_id and source_id = s.id and mode = v_mode
      returning * into r;
  end if;
  update app.insight_connectors
    set fence = fence + 1, unit_id = v_unit_id, lease_expires_at = v_now + make_interval(secs => p_seconds),
      due_at = v_now + make_interval(secs => p_seconds)
    where organization_id = p_organization_id and integration_id = p_integration_id
    returning * into k;
  insert into app.insight_units (organization_id, id, integration_id, source_id, mode, fence, generation_digest)
    values (p_organization_id, v_unit_id, p_integration_id, s.id, v_mode, k.fence, app.insight_generation(i, o.authorization_epoch,
      coalesce(s.adapter_version, 0), coalesce(s.schema_version, 0)));
  return jsonb_build_object('claimed', true, 'unit', jsonb_build_object('id', v_unit_id, 'fence', k.fence, 'mode', v_mode,
    'provider', i.provider,
    'leaseExpiresAt', k.lease_expires_at, 'connectionRevision', i.connection_revision,
    'cursor', r.cursor, 'round', r.round,
    'source', case when s.id is not null then jsonb_build_object('id', s.id, 'resourceId', s.resource_id, 'dataset', s.dataset,
      'environment', s.environment, 'timezone', s.timezone, 'coverage', s.coverage) end));
end
$$;

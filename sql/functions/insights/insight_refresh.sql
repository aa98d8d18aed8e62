-- Brings collecting forward to now (docs/interface.md 4.11): of each source its tail, and a rescan whose last one is an hour old; of a
-- connector whose sources are not known the search for them, where its provider has datasets (p_providers: those that have). All
-- connectors, or that of p_connector_key. Makes no job: dispatch finds what is due. p_actor: see insight_refresh_require.
-- Returns {moved: [sourceId], unchanged: [{sourceId, reason}], discovery: [connectorKey]}. A reason is the first that holds of paused,
-- unavailable, leased (it is being collected), retry_not_before, due, recent (completed within the last minute).
-- Locks: organization → connectors, which keeps claims and commits out.
-- Codes: 401 agent_unauthorized, 404 organization_not_found | integration_not_found, 409 integration_not_ready |
-- state_conflict (agents of a suspended organization).
create or replace function app.insight_refresh(p_organization_id uuid, p_connector_key text, p_providers jsonb, p_actor jsonb)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_now timestamptz;
  v_only uuid;
  v_reason text;
  v_moved uuid[];
  v_unchanged jsonb;
  v_searched uuid[];
  v_settled uuid;
  o app.organizations := app.insight_refresh_require(p_organization_id, p_actor);
  i app.integrations;
  c app.integration_connections;
begin
  if p_connector_key is not null then
    select * into i from app.integrations where organization_id = p_organization_id and key = p_connector_key;
    if not found then
      perform app.fail(404, 'integration_not_found', 'Integration not found');
    end if;
    v_only := i.id;
    select * into c from app.integration_connections where organization_id = p_organization_id and integration_id = i.id;
    v_reason := app.integration_unavailable(i, c, null, o.constraints -> 'allowedIntegrations');
    if v_reason is not null then
      perform app.fail(409, 'integration_not_ready', 'Nothing is collected by the integration as it is',
        app.issue('connectorKey', v_reason, format('is not available (%s)', v_reason)));
    end if;
  end if;
  perform 1 from app.insight_connectors
    where organization_id = p_organization_id and (v_only is null or integration_id = v_only)
    order by integration_id for no key update;
  v_now := clock_timestamp();

  with judged as (
    select s.id, case
        when t.status <> 'active' then t.status
        when k.lease_expires_at > v_now and exists (select from app.insight_units u
          where u.organization_id = s.organization_id and u.id = k.unit_id and u.source_id = s.id) then 'leased'
        when k.retry_not_before > v_now then 'retry_not_before'
        when d.is_due then 'due'
        -- What has no date, as a rescan that is new, is not moved either.
        when s.last_completed_at > v_now - interval '1 minute' or not d.moves then 'recent' end as reason
      from app.insight_sources s
      left join app.integrations j on j.organization_id = s.organization_id and j.id = s.integration_id
      left join app.integration_connections n on n.organization_id = s.organization_id and n.integration_id = s.integration_id
      left join app.insight_connectors k on k.organization_id = s.organization_id and k.integration_id = s.integration_id
      cross join lateral (select app.insight_source_status(s, o, j, n) as status) t
      cross join lateral (
        select coalesce(bool_or(u.mode = 'tail' and u.due_at <= v_now), false) as is_due,
            coalesce(bool_or(u.due_at > v_now and app.insight_cursor_refreshes(u, v_now)), false) as moves
          from app.insight_cursors u where u.organization_id = s.organization_id and u.source_id = s.id) d
      where s.organization_id = p_organization_id and (v_only is null or s.integration_id = v_only))
  select coalesce(array_agg(g.id order by g.id) filter (where g.reason is null), '{}'),
      coalesce(jsonb_agg(jsonb_build_object('sourceId', g.id, 'reason', g.reason) order by g.id) filter (where g.reason is not null), '[]')
    into v_moved, v_unchanged from judged g;
  update app.insight_cursors u set due_at = v_now
    where u.organization_id = p_organization_id and u.source_id = any (v_moved) and u.due_at > v_now
      and app.insight_cursor_refreshes(u, v_now);

  -- One that was last looked for under another connection or other settings counts as one without sources.
  with searched as (
    update app.insight_connectors k set discovery_due_at = v_now
      from app.integrations j
      left join app.integration_connections n on n.organization_id = j.organization_id and n.integration_id = j.id
      where k.organization_id = p_organization_id and (v_only is null or k.integration_id = v_only)
        and j.organization_id = k.organization_id and j.id = k.integration_id and p_providers ? j.provider
        and o.status <> 'suspended' and app.integration_unavailable(j, n, null, o.constraints -> 'allowedIntegrations') is null
        and coalesce(k.lease_expires_at <= v_now, true) and coalesce(k.retry_not_before <= v_now, true)
        and coalesce(k.discovery_due_at > v_now, true)
        and (k.discovered_at is null or k.discovered_revision <> j.connection_revision or k.discovered_scope <> app.insight_scope(j)
          or k.discovered_at <= v_now - interval '1 minute' and not exists (select from app.insight_sources s
            where s.organization_id = k.organization_id and s.integration_id = k.integration_id and s.in_scope))
      returning k.integration_id)
  select coalesce(array_agg(x.integration_id), '{}') into v_searched from searched x;

  for v_settled in
    select s.integration_id from app.insight_sources s where s.organization_id = p_organization_id and s.id = any (v_moved)
    union select unnest(v_searched)
  loop
    perform app.insight_connector_settle(p_organization_id, v_settled);
  end loop;
  return jsonb_build_object('moved', to_jsonb(v_moved), 'unchanged', v_unchanged, 'discovery', coalesce((
    select jsonb_agg(j.key order by j.key) from app.integrations j
      where j.organization_id = p_organization_id and j.id = any (v_searched)), '[]'));
end
$$;

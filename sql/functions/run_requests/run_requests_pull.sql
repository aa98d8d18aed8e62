-- published → leased, for up to cardinality(p_worker_ids) requests; item i is claimed for p_worker_ids[i].
-- Organizations take turns (longest unserved first) and get equal shares; within one: priority, then age. One at its
-- capacity is not open and so never seen; capacity is taken here. Null filters mean all.
-- The gate is the only wait, and holds nothing before it: two pulls at once would skip each other's organizations and both
-- come back with less. Everything after it is "skip locked". Asynchronous commit is safe: a claim that a crash takes back
-- was never started, and its fence is handed out again only after the crash.
-- Each item: {organizationId, runRequestId, leaseToken, kind, mode, attempt, priority, leaseExpiresAt, agentProfile, task}
-- with agentProfile and task as rows; attempt is the one that a start would make.
create or replace function app.run_requests_pull(
  p_worker_ids text[], p_organization_ids uuid[], p_profile_keys text[], p_kinds text[], p_claim_seconds integer)
  returns jsonb
  language plpgsql security definer
  set search_path = pg_catalog, pg_temp
  set plan_cache_mode = force_generic_plan
as $$
declare
  v_limit integer := cardinality(p_worker_ids);
  v_organizations uuid[];
  v_kinds text[];
  v_share integer;
  v_items jsonb;
begin
  perform set_config('synchronous_commit', 'off', true);
  perform 1 from app.pull_gate for no key update;

  select array_agg(o.organization_id), array_agg(o.kind) into v_organizations, v_kinds
    from (
      select d.organization_id, d.kind from app.dispatch d
        where d.open
          and (p_kinds is null or d.kind = any (p_kinds))
          and (p_organization_ids is null or d.organization_id = any (p_organization_ids))
          and (p_profile_keys is null or exists (
            select 1 from app.dispatch_lanes l
              join app.agent_profiles p on p.organization_id = l.organization_id and p.id = l.agent_profile_id
              where l.organization_id = d.organization_id and l.kind = d.kind and l.open and p.key = any (p_profile_keys)))
        order by d.turn, d.organization_id, d.kind
        limit v_limit
        for no key update skip locked
    ) o;
  if v_organizations is null then
    return '{"items": []}';
  end if;
  v_share := ceil(v_limit::numeric / cardinality(v_organizations))::integer;

  -- A fresh snapshot: the counters are now those under our locks.
  with turns as (
    select t.organization_id, t.kind, t.place from unnest(v_organizations, v_kinds) with ordinality t(organization_id, kind, place)
  ), heads as materialized (
    select t.organization_id, t.kind, c.id, c.priority, c.published_at, t.place,
        row_number() over (partition by t.place order by c.priority desc, c.published_at, c.id) as round
      from turns t
      join app.dispatch d on d.organization_id = t.organization_id and d.kind = t.kind
      cross join lateral (
        select h.id, h.priority, h.published_at
          from app.dispatch_lanes l
          cross join lateral (
            select q.id, q.priority, q.published_at from app.run_requests q
              where q.organization_id = l.organization_id and q.agent_profile_id = l.agent_profile_id
                and q.kind = l.kind and q.state = 'published'
              order by q.priority desc, q.published_at, q.id
              limit least(l.capacity - l.held, v_share)
              for no key update skip locked
          ) h
          where l.organization_id = t.organization_id and l.kind = t.kind and l.open
            and (p_profile_keys is null or exists (
              select 1 from app.agent_profiles p
                where p.organization_id = l.organization_id and p.id = l.agent_profile_id and p.key = any (p_profile_keys)))
          order by h.priority desc, h.published_at, h.id
          limit least(d.capacity - d.held, v_share)
      ) c
      where d.open
  ), chosen as materialized (
    select h.*, row_number() over (order by h.round, h.place) as slot,
        replace(gen_random_uuid()::text, '-', '') || replace(gen_random_uuid()::text, '-', '') as secret
      from heads h
      order by h.round, h.place
      limit v_limit
  ), claimed as (
    update app.run_requests r
      set state = 'leased', fence = r.fence + 1, lease_secret_hash = sha256(convert_to(c.secret, 'UTF8')),
        lease_expires_at = clock_timestamp() + make_interval(secs => p_claim_seconds),
        worker_id = p_worker_ids[c.slot]
      from chosen c
      where r.organization_id = c.organization_id and r.id = c.id
      returning r.organization_id, r.id, r.kind, r.task_id, r.agent_profile_id, r.mode, r.attempt, r.priority, r.fence,
        r.lease_expires_at, c.slot, c.secret
  ), lanes as (
    update app.dispatch_lanes l
      set ready = l.ready - n.claims, held = l.held + n.claims
      from (select organization_id, kind, agent_profile_id, count(*)::integer as claims from claimed
              group by organization_id, kind, agent_profile_id) n
      where l.organization_id = n.organization_id and l.kind = n.kind and l.agent_profile_id = n.agent_profile_id
      returning l.organization_id, l.kind, n.claims, l.open
  ), counted as (
    -- The turn is over also for one whose requests were all locked by others: it would stand in the way of the rest.
    update app.dispatch d
      set turn = clock_timestamp(), held = d.held + coalesce(n.claims, 0), open_lanes = d.open_lanes - coalesce(n.closed, 0)
      from turns t
      left join (select organization_id, kind, sum(claims)::integer as claims,
                        count(*) filter (where not open)::integer as closed
                   from lanes group by organization_id, kind) n
        on n.organization_id = t.organization_id and n.kind = t.kind
      where d.organization_id = t.organization_id and d.kind = t.kind
      returning 1
  )
  select jsonb_agg(jsonb_build_object(
      'organizationId', c.organization_id, 'runRequestId', c.id, 'leaseToken', c.fence || '.' || c.secret,
      'kind', c.kind, 'mode', c.mode, 'attempt', c.attempt + 1, 'priority', c.priority,
      'leaseExpiresAt', c.lease_expires_at, 'agentProfile', to_jsonb(p),
      'task', to_jsonb(t) || jsonb_build_object('graph_revision', root.graph_revision)) order by c.slot)
    into v_items
    from claimed c
    join app.agent_profiles p on p.organization_id = c.organization_id and p.id = c.agent_profile_id
    left join app.tasks t on t.organization_id = c.organization_id and t.id = c.task_id
    left join app.tasks root on root.organization_id = t.organization_id and root.id = t.root_task_id;
  return jsonb_build_object('items', coalesce(v_items, '[]'));
end
$$;

alter function app.run_requests_pull owner to runner_global;
revoke all on function app.run_requests_pull from public;
grant execute on function app.run_requests_pull to runner_api;

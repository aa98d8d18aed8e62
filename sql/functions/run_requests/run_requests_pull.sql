-- Run request published → leased, for up to cardinality(p_worker_ids) requests; the i-th is claimed for p_worker_ids[i]. A
-- filter that is null admits everything.
-- Organizations are served round-robin, the one that has waited longest first, with equal shares; within an organization by
-- priority, then age. An organization at its capacity is not open, so it is never looked at. The pull reserves capacity.
-- Locks: pull gate → dispatch rows → run requests, all but the gate with skip locked. Without the gate, two concurrent pulls
-- would skip each other's organizations and both return less. Nothing is locked before the gate, so waiting for it blocks
-- nobody.
-- Commits asynchronously: a claim that a crash undoes was never started, because the start would have flushed it, and the next
-- claim has another secret.
-- Uses several small statements per organization: in one large statement, most of the time was spent on starting its plan.
-- Returns {items: [{organizationId, runRequestId, leaseToken, kind, mode, attempt, priority, leaseExpiresAt, agentProfile,
-- task, chat}]}, with agentProfile, task and chat as rows and the reply's message_id in chat; task or chat is null. attempt is
-- the number that a start will have.
create or replace function app.run_requests_pull(
  p_worker_ids text[], p_organization_ids uuid[], p_profile_keys text[], p_kinds text[], p_claim_seconds integer)
  returns jsonb
  language plpgsql security definer
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
as $$
declare
  v_asynchronous constant text := set_config('synchronous_commit', 'off', true);
  v_limit integer := cardinality(p_worker_ids);
  v_turns app.dispatch[];
  v_turn app.dispatch;
  v_left integer;
  v_places integer;
  v_share integer;
  v_lane uuid;
  v_rest uuid[];
  v_ids uuid[];
  v_profiles uuid[];
  v_closed integer;
  v_item jsonb;
  v_items jsonb := '[]';
  v_secret text;
begin
  perform 1 from app.pull_gate for no key update;

  select array_agg(o.d) into v_turns
    from (
      select d from app.dispatch d
        where d.open
          and (p_kinds is null or d.kind = any (p_kinds))
          and (p_organization_ids is null or d.organization_id = any (p_organization_ids))
          and (p_profile_keys is null or exists (
            select 1 from app.dispatch_lanes l
              join app.agent_profiles p on p.organization_id = l.organization_id and p.id = l.agent_profile_id
              where l.organization_id = d.organization_id and l.kind = d.kind and l.open and p.key = any (p_profile_keys)))
        order by d.served_at, d.organization_id, d.kind
        limit v_limit
        for no key update skip locked
    ) o;
  v_left := v_limit;
  v_places := coalesce(cardinality(v_turns), 0);

  -- The counters are those read under the lock. What earlier organizations leave unused goes to the later ones.
  foreach v_turn in array coalesce(v_turns, '{}') loop
    v_share := least(v_turn.capacity - v_turn.held, (v_left + v_places - 1) / v_places);
    -- The best requests from the heads of its lanes, within the capacity of each lane.
    select coalesce(array_agg(c.id), '{}'), coalesce(array_agg(c.agent_profile_id), '{}') into v_ids, v_profiles
      from (
        select h.id, l.agent_profile_id
          from app.dispatch_lanes l
          cross join lateral (
            select q.id, q.priority, q.published_at from app.run_requests q
              where q.organization_id = l.organization_id and q.agent_profile_id = l.agent_profile_id
                and q.kind = l.kind and q.state = 'published'
              order by q.priority desc, q.published_at, q.id
              limit least(l.capacity - l.held, v_share)
              for no key update skip locked
          ) h
          where l.organization_id = v_turn.organization_id and l.kind = v_turn.kind and l.open
            and (p_profile_keys is null or exists (
              select 1 from app.agent_profiles p
                where p.organization_id = l.organization_id and p.id = l.agent_profile_id
                  and p.key = any (p_profile_keys)))
          order by h.priority desc, h.published_at, h.id
          limit v_share
      ) c;
    v_places := v_places - 1;
    v_closed := 0;
    for place in 1 .. cardinality(v_ids) loop
      v_secret := replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', '');
      with claimed as (
        update app.run_requests r
          set state = 'leased', fence = r.fence + 1, lease_secret_hash = sha256(convert_to(v_secret, 'UTF8')),
            lease_expires_at = clock_timestamp() + make_interval(secs => p_claim_seconds),
            worker_id = p_worker_ids[v_limit - v_left + 1]
          where r.organization_id = v_turn.organization_id and r.id = v_ids[place]
          returning r.*
      )
      select jsonb_build_object(
          'organizationId', c.organization_id, 'runRequestId', c.id, 'leaseToken', c.fence || '.' || v_secret,
          'kind', c.kind, 'mode', c.mode, 'attempt', c.attempt + 1, 'priority', c.priority,
          'leaseExpiresAt', c.lease_expires_at, 'agentProfile', to_jsonb(p),
          'task', to_jsonb(t) || jsonb_build_object('graph_revision', root.graph_revision, 'spend_limited', root.spend_limited,
            'children', case when c.mode <> 'execute' then app.task_children(c.organization_id, c.task_id) end,
            'failures', case when t.agent_run_count > 0 then app.task_failures(c.organization_id, c.task_id) end),
          'chat', to_jsonb(h) || jsonb_build_object('message_id', c.message_id))
        into v_item
        from claimed c
        join app.agent_profiles p on p.organization_id = c.organization_id and p.id = c.agent_profile_id
        left join app.tasks t on t.organization_id = c.organization_id and t.id = c.task_id
        left join app.tasks root on root.organization_id = t.organization_id and root.id = t.root_task_id
        left join app.chats h on h.organization_id = c.organization_id and h.id = c.chat_id;
      v_items := v_items || v_item;
      v_left := v_left - 1;
    end loop;
    -- Lane by lane.
    while cardinality(v_profiles) > 0 loop
      v_lane := v_profiles[1];
      v_rest := array_remove(v_profiles, v_lane);
      update app.dispatch_lanes l
        set ready = l.ready - (cardinality(v_profiles) - cardinality(v_rest)),
          held = l.held + (cardinality(v_profiles) - cardinality(v_rest))
        where l.organization_id = v_turn.organization_id and l.kind = v_turn.kind and l.agent_profile_id = v_lane
        returning v_closed + (not l.open)::integer into v_closed;
      v_profiles := v_rest;
    end loop;
    -- An organization whose requests were all locked by others goes to the end too: otherwise it would block the rest.
    update app.dispatch d
      set served_at = clock_timestamp(), held = d.held + cardinality(v_ids), open_lanes = d.open_lanes - v_closed
      where d.organization_id = v_turn.organization_id and d.kind = v_turn.kind;
  end loop;
  return jsonb_build_object('items', v_items);
end
$$;

-- What has become due: of each kind the oldest p_rows of an organization, of at most p_organizations that follow p_after of
-- the kind ({kind: organizationId}, see due_in_turns). One row per kind and organization, in the order of their ids, for the
-- dispatch job to process with the function for that kind. Reads only.
create or replace function app.dispatch_due(
  p_organizations integer default 100, p_rows integer default 50, p_after jsonb default '{}',
  p_chat_start_seconds integer default 300)
  returns table (kind text, organization_id uuid, ids uuid[])
  language sql stable security definer
as $$
  -- No index tells when leases end, for heartbeats would write to it: the sweep looks at all that is held.
  select 'expire', o.organization_id, array(
      select q.id from app.run_requests q
        where q.organization_id = o.organization_id and q.state in ('leased', 'started')
          and q.lease_expires_at <= (select clock_timestamp())
        order by q.lease_expires_at limit p_rows)
    from (select distinct q.organization_id from app.run_requests q
            where q.state in ('leased', 'started') and q.lease_expires_at <= (select clock_timestamp())
              and q.organization_id > coalesce((p_after ->> 'expire')::uuid, '00000000-0000-0000-0000-000000000000')
            order by q.organization_id limit p_organizations) o
  union all
  (select 'publish', d.organization_id, array_agg(d.id order by d.due_at)
    from (
      select * from app.due_in_turns('run_requests', 'due_at', $c$r.state = 'queued' and not r.parked$c$,
        clock_timestamp(), (p_after ->> 'publish')::uuid, p_organizations, p_rows)
      union all
      -- Parked although dispatch is on: created by a transaction that read "stopped" before the resume committed.
      select r.* from (
          with recursive parked as (
            (select q.organization_id from app.run_requests q
               where q.state = 'queued' and q.parked
                 and q.organization_id > coalesce((p_after ->> 'publish')::uuid, '00000000-0000-0000-0000-000000000000')
               order by q.organization_id limit 1)
            union all
            select (select q.organization_id from app.run_requests q
                      where q.state = 'queued' and q.parked and q.organization_id > parked.organization_id
                      order by q.organization_id limit 1)
              from parked where parked.organization_id is not null
          )
          select k.organization_id from parked k
            join app.dispatch d on d.organization_id = k.organization_id and d.kind = 'task' and not d.stopped
            limit p_organizations
        ) p
        cross join lateral (
          select q.organization_id, q.id, q.due_at from app.run_requests q
            where q.organization_id = p.organization_id and q.state = 'queued' and q.parked
              and q.due_at <= clock_timestamp()
            order by q.due_at limit p_rows) r
    ) d
    group by d.organization_id order by d.organization_id limit p_organizations)
  union all
  (select 'wake', d.organization_id, array_agg(d.id order by d.due_at)
    from (
      select * from app.due_in_turns('tasks', 'waiting_until', $c$r.status = 'waiting'$c$,
        clock_timestamp(), (p_after ->> 'wake')::uuid, p_organizations, p_rows)
      union all
      select * from app.due_in_turns('tasks', 'scheduled_at',
        $c$r.status = 'blocked' and r.scheduled_at is not null and r.blockers @> '[{"kind": "schedule"}]'$c$,
        clock_timestamp(), (p_after ->> 'wake')::uuid, p_organizations, p_rows)
    ) d
    group by d.organization_id order by d.organization_id limit p_organizations)
  union all
  -- Not started for too long, claimed or not.
  (select 'chat_overdue', d.organization_id, array_agg(d.id order by d.due_at)
    from app.due_in_turns('run_requests', 'created_at', $c$r.kind = 'chat' and r.state in ('published', 'leased')$c$,
      clock_timestamp() - make_interval(secs => p_chat_start_seconds),
      (p_after ->> 'chat_overdue')::uuid, p_organizations, p_rows) d
    group by d.organization_id order by d.organization_id limit p_organizations)
  union all
  (select 'fire', d.organization_id, array_agg(d.id order by d.due_at)
    from app.due_in_turns('schedules', 'next_run_at', 'r.next_run_at is not null',
      clock_timestamp(), (p_after ->> 'fire')::uuid, p_organizations, p_rows) d
    group by d.organization_id order by d.organization_id limit p_organizations)
  union all
  -- Approved ones, and those whose outcome has to be looked up: one job executes them all.
  (select 'action', d.organization_id, array_agg(d.id order by d.due_at)
    from app.due_in_turns('actions', 'due_at', 'r.due_at is not null',
      clock_timestamp(), (p_after ->> 'action')::uuid, p_organizations, p_rows) d
    group by d.organization_id order by d.organization_id limit p_organizations)
  union all
  (select 'action_expire', d.organization_id, array_agg(d.id order by d.due_at)
    from app.due_in_turns('actions', 'expires_at', $c$r.status = 'awaiting_approval'$c$,
      clock_timestamp(), (p_after ->> 'action_expire')::uuid, p_organizations, p_rows) d
    group by d.organization_id order by d.organization_id limit p_organizations)
  union all
  -- Facts to collect: one job takes them all.
  (select 'insight', d.organization_id, array_agg(d.id order by d.due_at)
    from app.due_in_turns('insight_connectors', 'due_at', 'r.due_at is not null',
      clock_timestamp(), (p_after ->> 'insight')::uuid, p_organizations, p_rows, 'integration_id') d
    group by d.organization_id order by d.organization_id limit p_organizations)
  union all
  -- One stands for all that waits to be indexed: a job of its own takes them.
  (select 'index', k.organization_id, array[k.message_id]
    from app.message_chunks k
    where k.search_text is null and k.due_at <= clock_timestamp()
      and exists (select from app.organizations o where o.id = k.organization_id and o.deleted_at is null)
    order by k.due_at limit 1)
$$;

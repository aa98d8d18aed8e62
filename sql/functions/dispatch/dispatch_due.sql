-- What has become due, in all organizations, at most p_limit of each kind: one row per organization and kind, for the dispatch
-- job to process with the function for that kind. Reads only.
create or replace function app.dispatch_due(p_limit integer, p_chat_start_seconds integer default 300)
  returns table (kind text, organization_id uuid, ids uuid[])
  language sql stable security definer
as $$
  select 'expire', r.organization_id, array_agg(r.id order by r.lease_expires_at)
    from (select q.organization_id, q.id, q.lease_expires_at from app.run_requests q
            where q.state in ('leased', 'started') and q.lease_expires_at <= clock_timestamp() limit p_limit) r
    group by r.organization_id
  union all
  select 'publish', r.organization_id, array_agg(r.id order by r.due_at)
    from (select q.organization_id, q.id, q.due_at from app.run_requests q
            where q.state = 'queued' and not q.parked and q.due_at <= clock_timestamp()
            order by q.due_at limit p_limit) r
    group by r.organization_id
  union all
  -- Parked although dispatch is on: created by a transaction that read "stopped" before the resume committed.
  select 'publish', p.organization_id, array_agg(r.id order by r.due_at)
    from (
      with recursive parked as (
        (select q.organization_id from app.run_requests q where q.state = 'queued' and q.parked
           order by q.organization_id limit 1)
        union all
        select (select q.organization_id from app.run_requests q
                  where q.state = 'queued' and q.parked and q.organization_id > parked.organization_id
                  order by q.organization_id limit 1)
          from parked where parked.organization_id is not null
      )
      select k.organization_id from parked k
        join app.dispatch d on d.organization_id = k.organization_id and d.kind = 'task' and not d.stopped
    ) p
    cross join lateral (
      select q.id, q.due_at from app.run_requests q
        where q.organization_id = p.organization_id and q.state = 'queued' and q.parked
          and q.due_at <= clock_timestamp()
        order by q.due_at limit p_limit) r
    group by p.organization_id
  union all
  select 'wake', t.organization_id, array_agg(t.id)
    from (
      (select k.organization_id, k.id from app.tasks k
         where k.status = 'waiting' and k.waiting_until <= clock_timestamp() order by k.waiting_until limit p_limit)
      union
      (select k.organization_id, k.id from app.tasks k
         where k.status = 'blocked' and k.scheduled_at is not null and k.scheduled_at <= clock_timestamp()
           and k.blockers @> '[{"kind": "schedule"}]'
         order by k.scheduled_at limit p_limit)
    ) t
    group by t.organization_id
  union all
  -- Not started for too long, claimed or not.
  select 'chat_overdue', r.organization_id, array_agg(r.id order by r.created_at)
    from (select q.organization_id, q.id, q.created_at from app.run_requests q
            where q.kind = 'chat' and q.state in ('published', 'leased')
              and q.created_at <= clock_timestamp() - make_interval(secs => p_chat_start_seconds)
            order by q.created_at limit p_limit) r
    group by r.organization_id
  union all
  select 'fire', s.organization_id, array_agg(s.id order by s.next_run_at)
    from (select c.organization_id, c.id, c.next_run_at from app.schedules c
            join app.organizations o on o.id = c.organization_id and o.deleted_at is null
            where c.next_run_at <= clock_timestamp()
            order by c.next_run_at limit p_limit) s
    group by s.organization_id
$$;

-- How many run requests of each kind are ready and held, in all organizations, from the exact counters, and how long the oldest one
-- that may be pulled has waited (0: none): {task: {ready, held, oldestSeconds}, chat: {ready, held, oldestSeconds}}. The 1,000
-- oldest are looked at: those of suspended organizations are not handed out. For metrics.
create or replace function app.dispatch_totals()
  returns jsonb
  language sql stable security definer
as $$
  select jsonb_object_agg(k.kind, jsonb_build_object(
      'ready', (select coalesce(sum(l.ready), 0) from app.dispatch_lanes l where l.kind = k.kind),
      'held', (select coalesce(sum(d.held), 0) from app.dispatch d where d.kind = k.kind),
      'oldestSeconds', coalesce((
        select greatest(extract(epoch from clock_timestamp() - min(q.published_at)), 0)
          from (select r.organization_id, r.published_at from app.run_requests r
                  where r.kind = k.kind and r.state = 'published'
                  order by r.published_at limit 1000) q
          where not exists (select from app.dispatch d
            where d.organization_id = q.organization_id and d.kind = k.kind and d.suspended)), 0)))
    from (values ('task'), ('chat')) k(kind)
$$;

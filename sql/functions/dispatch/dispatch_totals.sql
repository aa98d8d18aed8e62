-- How many run requests of each kind are ready and held, in all organizations, from the exact counters: {task: {ready, held},
-- chat: {ready, held}}. For metrics.
create or replace function app.dispatch_totals()
  returns jsonb
  language sql stable security definer
as $$
  select jsonb_object_agg(k.kind, jsonb_build_object(
      'ready', (select coalesce(sum(l.ready), 0) from app.dispatch_lanes l where l.kind = k.kind),
      'held', (select coalesce(sum(d.held), 0) from app.dispatch d where d.kind = k.kind)))
    from (values ('task'), ('chat')) k(kind)
$$;

-- Run request queued and due → published; while work dispatch is stopped it is parked instead. Called by the dispatch job.
-- Locks: run requests (skip locked) → (commit) dispatch. Returns {published, parked}.
create or replace function app.run_requests_publish(p_organization_id uuid, p_run_request_ids uuid[])
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_ids uuid[];
  v_published integer;
  v_parked integer;
begin
  -- Rows that another transaction has locked are left for the next round: it may be stopping dispatch, or ending the task.
  select array_agg(q.id) into v_ids
    from (select id from app.run_requests
            where organization_id = p_organization_id and id = any (p_run_request_ids)
            order by id for no key update skip locked) q;
  with moved as (
    update app.run_requests r
      set state = case when d.stopped then 'queued' else 'published' end, parked = d.stopped,
        published_at = case when d.stopped then r.published_at else clock_timestamp() end
      from app.dispatch d
      where r.organization_id = p_organization_id and r.id = any (v_ids)
        and r.state = 'queued' and r.due_at <= clock_timestamp()
        and d.organization_id = r.organization_id and d.kind = r.kind
      returning r.state)
  select count(*) filter (where state = 'published'), count(*) filter (where state = 'queued')
    into v_published, v_parked from moved;
  return jsonb_build_object('published', v_published, 'parked', v_parked);
end
$$;

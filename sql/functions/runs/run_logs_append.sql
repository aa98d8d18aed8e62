-- Appends a batch of log entries, p_entries: [{sequence, category, status, label, detail, occurredAt}], already validated in
-- shape.
-- A repeated sequence with the same content is ignored; with different content the whole batch is refused. After 10,000 entries
-- of a run the rest is dropped, and its log is truncated.
-- Locks: run request → run. Codes: 409 run_lease_expired with lease_lost | differs.
create or replace function app.run_logs_append(p_organization_id uuid, p_run_id uuid, p_lease_token text, p_entries jsonb)
  returns jsonb
  language plpgsql security definer
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  r app.run_requests;
  v_status text;
  v_entries constant integer := jsonb_array_length(p_entries);
  v_inserted integer;
  v_fresh integer;
  v_room integer;
begin
  r := app.run_request_lock(p_organization_id, p_run_id);
  if r.run_id is distinct from p_run_id or r.state <> 'started' or not app.lease_is_current(r, p_lease_token) then
    perform app.lease_refuse('lease_lost');
  end if;
  -- Usually all entries are new and fit: then this statement suffices.
  update app.runs
    set log_count = log_count + v_entries, log_state = 'recording', updated_at = clock_timestamp()
    where organization_id = p_organization_id and id = p_run_id and log_state <> 'truncated'
      and v_entries > 0 and log_count + v_entries <= 10000
    returning status into v_status;
  if found then
    insert into app.run_logs (organization_id, run_id, sequence, category, status, label, detail, occurred_at)
      select p_organization_id, p_run_id, e.sequence, e.category, e.status, e.label, coalesce(e.detail, ''), e."occurredAt"
        from jsonb_to_recordset(p_entries)
          e(sequence bigint, category text, status text, label text, detail text, "occurredAt" timestamptz)
      on conflict do nothing;
    get diagnostics v_inserted = row_count;
  end if;
  if v_inserted = v_entries then
    return jsonb_build_object('status', case when r.cancel_requested_at is not null then 'cancelling' else v_status end);
  end if;

  -- Some are already stored, or were just inserted by this batch.
  if exists (
    select 1 from (select distinct e.* from jsonb_to_recordset(p_entries)
        e(sequence bigint, category text, status text, label text, detail text, "occurredAt" timestamptz)) e
      group by e.sequence having count(*) > 1
  ) or exists (
    select 1 from jsonb_to_recordset(p_entries)
        e(sequence bigint, category text, status text, label text, detail text, "occurredAt" timestamptz)
      join app.run_logs l on l.organization_id = p_organization_id and l.run_id = p_run_id and l.sequence = e.sequence
      where (l.category, l.status, l.label, l.detail, l.occurred_at)
        is distinct from (e.category, e.status, e.label, coalesce(e.detail, ''), e."occurredAt")
  ) then
    perform app.lease_refuse('differs');
  end if;
  if v_inserted is not null then
    update app.runs set log_count = log_count - (v_entries - v_inserted)
      where organization_id = p_organization_id and id = p_run_id;
  else
    -- Not all of them fit.
    select status, 10000 - log_count into v_status, v_room from app.runs
      where organization_id = p_organization_id and id = p_run_id;
    with fresh as (
      select distinct e.* from jsonb_to_recordset(p_entries)
          e(sequence bigint, category text, status text, label text, detail text, "occurredAt" timestamptz)
        where not exists (select 1 from app.run_logs l where l.organization_id = p_organization_id
          and l.run_id = p_run_id and l.sequence = e.sequence)
    ), inserted as (
      insert into app.run_logs (organization_id, run_id, sequence, category, status, label, detail, occurred_at)
        select p_organization_id, p_run_id, f.sequence, f.category, f.status, f.label, coalesce(f.detail, ''), f."occurredAt"
          from fresh f order by f.sequence limit v_room
        returning 1)
    select (select count(*) from inserted), (select count(*) from fresh) into v_inserted, v_fresh;
    if v_fresh > 0 then
      update app.runs
        set log_count = log_count + v_inserted, updated_at = clock_timestamp(),
          log_state = case when v_inserted < v_fresh or log_state = 'truncated' then 'truncated' else 'recording' end
        where organization_id = p_organization_id and id = p_run_id
          and (v_inserted > 0 or log_state <> 'truncated');
    end if;
  end if;
  return jsonb_build_object('status', case when r.cancel_requested_at is not null then 'cancelling' else v_status end);
end
$$;

-- Takes one token of each bucket, or none of any. p_buckets: [{key, capacity, perSecond}], each key once. A full bucket holds capacity
-- tokens, and perSecond come back; it is one time, when it is full again (the generic cell rate algorithm). What the provider
-- asked for (retry_not_before) holds whatever is left.
-- Not worth a flush: a crash gives some tokens back. Returns {granted, retryAfterMs}.
-- Locks: buckets by key.
create or replace function app.rate_limit_take(p_buckets jsonb)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_now timestamptz;
  v_wait interval;
begin
  perform set_config('synchronous_commit', 'off', true);
  insert into app.rate_limit_buckets (key, full_at)
    select b ->> 'key', clock_timestamp() from jsonb_array_elements(p_buckets) b order by b ->> 'key'
    on conflict (key) do nothing;
  perform 1 from app.rate_limit_buckets
    where key in (select b ->> 'key' from jsonb_array_elements(p_buckets) b)
    order by key for no key update;
  v_now := clock_timestamp();
  select max(greatest(r.retry_not_before - v_now,
      greatest(r.full_at, v_now) - v_now - (b.capacity - 1) * interval '1 second' / b.per_second))
    into v_wait
    from (select e ->> 'key' as key, (e ->> 'capacity')::double precision as capacity,
        (e ->> 'perSecond')::double precision as per_second
      from jsonb_array_elements(p_buckets) e) b
    join app.rate_limit_buckets r on r.key = b.key;
  if v_wait > interval '0' then
    return jsonb_build_object('granted', false, 'retryAfterMs', ceil(extract(epoch from v_wait) * 1000)::bigint);
  end if;
  update app.rate_limit_buckets r
    set full_at = greatest(r.full_at, v_now) + interval '1 second' / b.per_second
    from (select e ->> 'key' as key, (e ->> 'perSecond')::double precision as per_second
      from jsonb_array_elements(p_buckets) e) b
    where r.key = b.key;
  return '{"granted": true, "retryAfterMs": 0}';
end
$$;

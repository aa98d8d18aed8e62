-- Records that a provider asked not to be called before p_until (Retry-After). The latest counts, and a day at most. Returns {held}.
-- Locks: buckets by key.
create or replace function app.rate_limit_hold(p_keys text[], p_until timestamptz)
  returns jsonb
  language plpgsql security definer
as $$
begin
  insert into app.rate_limit_buckets as r (key, full_at, retry_not_before)
    select k, clock_timestamp(), least(p_until, clock_timestamp() + interval '1 day') from unnest(p_keys) k order by k
    on conflict (key) do update set retry_not_before = greatest(r.retry_not_before, excluded.retry_not_before);
  return jsonb_build_object('held', cardinality(p_keys));
end
$$;

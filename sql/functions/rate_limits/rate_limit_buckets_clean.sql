-- Removes buckets that say nothing: full for an hour, and not held. At most p_rows. Returns {removed}.
create or replace function app.rate_limit_buckets_clean(p_rows integer)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_removed integer;
begin
  delete from app.rate_limit_buckets where ctid = any (array(
    select ctid from app.rate_limit_buckets
      where full_at < clock_timestamp() - interval '1 hour'
        and (retry_not_before is null or retry_not_before < clock_timestamp())
      limit p_rows for update skip locked));
  get diagnostics v_removed = row_count;
  return jsonb_build_object('removed', v_removed);
end
$$;

-- Deletes up to p_limit keys older than 24 hours, in all organizations. Returns {removed}.
create or replace function app.idempotency_keys_clean(p_limit integer)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_removed integer;
begin
  delete from app.idempotency_keys where ctid = any (array(
    select ctid from app.idempotency_keys where created_at < now() - interval '24 hours'
      order by created_at limit p_limit for update skip locked));
  get diagnostics v_removed = row_count;
  return jsonb_build_object('removed', v_removed);
end
$$;

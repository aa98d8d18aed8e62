-- Gives the caller the lease by which one process of all asks for rates, where that is due. It stays due until the caller has stored
-- what it found or has failed; one that dies leaves it to whoever comes after p_seconds. A repeat does not get it a second time.
-- Returns {claimed, fence, newestDay, historyLoadedAt, now}; claimed false: {claimed, leaseExpiresAt}, null where nobody looks and it is
-- not due.
-- Locks: the source.
create or replace function app.currency_rates_claim(p_seconds integer)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_now timestamptz;
  s app.currency_rate_sources;
begin
  select * into strict s from app.currency_rate_sources where key = 'ecb' for no key update;
  v_now := clock_timestamp();
  if s.lease_expires_at > v_now then
    return jsonb_build_object('claimed', false, 'leaseExpiresAt', s.lease_expires_at);
  elsif s.due_at > v_now then
    return jsonb_build_object('claimed', false, 'leaseExpiresAt', null);
  end if;
  update app.currency_rate_sources
    set fence = fence + 1, lease_expires_at = v_now + make_interval(secs => p_seconds)
    where key = 'ecb'
    returning * into s;
  return jsonb_build_object('claimed', true, 'fence', s.fence, 'newestDay', s.newest_day,
    'historyLoadedAt', s.history_loaded_at, 'now', v_now);
end
$$;

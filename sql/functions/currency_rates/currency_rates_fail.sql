-- Ends a lease under which rates could not be read. They are looked for again after a pause that doubles with each failure in a row, from
-- p_first_seconds to p_longest_seconds, and not before p_not_before, where the bank asked for that.
-- Returns {held, isNew, failureCount, dueAt}; isNew: the last look did not fail, or with another code. held false: the lease is gone.
-- Locks: the source.
create or replace function app.currency_rates_fail(
  p_fence integer, p_error_code text, p_not_before timestamptz, p_first_seconds integer, p_longest_seconds integer)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_now timestamptz;
  v_is_new boolean;
  s app.currency_rate_sources;
begin
  select * into strict s from app.currency_rate_sources where key = 'ecb' for no key update;
  v_now := clock_timestamp();
  if s.fence <> p_fence or s.lease_expires_at is null or s.lease_expires_at <= v_now then
    return jsonb_build_object('held', false, 'isNew', false, 'failureCount', s.failure_count, 'dueAt', s.due_at);
  end if;
  v_is_new := s.error_code is distinct from p_error_code;
  update app.currency_rate_sources
    set lease_expires_at = null, failure_count = failure_count + 1, error_code = p_error_code,
      due_at = greatest(p_not_before,
        v_now + make_interval(secs => least(p_longest_seconds, p_first_seconds * 2 ^ least(failure_count, 20))))
    where key = 'ecb'
    returning * into s;
  return jsonb_build_object('held', true, 'isNew', v_is_new, 'failureCount', s.failure_count, 'dueAt', s.due_at);
end
$$;

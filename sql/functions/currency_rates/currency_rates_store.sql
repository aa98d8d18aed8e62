-- Stores rates that were found under a lease. p_days: [{day, rates: {currency: rate as text}}], each day once. What is there stays; where
-- the bank gives another rate than before, the whole history (p_is_history) decides, and replaces it. Other documents do not: they
-- may come from a cache that is behind.
-- p_due_at: of the last batch alone, when rates are looked for next. It ends the lease, unless rates differ that only the history can
-- replace. A batch that is stored before a crash is found again by the next one, and changes nothing.
-- Returns {held, added, differing, replaced: [{currency, day, was, rate}]}; held false: the lease is gone, and nothing is stored.
-- Locks: the source → rates.
create or replace function app.currency_rates_store(
  p_fence integer, p_days jsonb, p_is_history boolean, p_due_at timestamptz default null)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_added integer;
  v_differing integer;
  v_replaced jsonb;
  v_now timestamptz;
  s app.currency_rate_sources;
begin
  select * into strict s from app.currency_rate_sources where key = 'ecb' for no key update;
  v_now := clock_timestamp();
  if s.fence <> p_fence or s.lease_expires_at is null or s.lease_expires_at <= v_now then
    return '{"held": false, "added": 0, "differing": 0, "replaced": []}';
  end if;
  with given as materialized (
    select r.key as currency, (d ->> 'day')::date as day, r.value::numeric as rate
      from jsonb_array_elements(p_days) d cross join jsonb_each_text(d -> 'rates') r
    union all
    select 'EUR', (d ->> 'day')::date, 1 from jsonb_array_elements(p_days) d
  ), compared as materialized (
    select g.currency, g.day, g.rate, c.rate as was
      from given g left join app.currency_rates c on c.currency = g.currency and c.day = g.day
  ), differing as (
    select * from compared where was <> rate
  ), replaced as (
    update app.currency_rates c set rate = d.rate from differing d
      where p_is_history and c.currency = d.currency and c.day = d.day
      returning c.currency, c.day, d.was, c.rate
  ), added as (
    insert into app.currency_rates (currency, day, rate) select currency, day, rate from compared where was is null
      returning 1
  )
  select (select count(*) from added), (select count(*) from differing),
      (select coalesce(jsonb_agg(jsonb_build_object('currency', r.currency, 'day', r.day, 'was', r.was::text, 'rate', r.rate::text)
        order by r.day, r.currency), '[]') from replaced r)
    into v_added, v_differing, v_replaced;
  if p_due_at is not null and (p_is_history or v_differing = 0) then
    update app.currency_rate_sources
      set due_at = p_due_at, lease_expires_at = null, looked_at = v_now, failure_count = 0, error_code = null,
        newest_day = (select max(day) from app.currency_rates where currency = 'EUR'),
        history_loaded_at = case when p_is_history then v_now else history_loaded_at end
      where key = 'ecb';
  end if;
  return jsonb_build_object('held', true, 'added', v_added, 'differing', v_differing, 'replaced', v_replaced);
end
$$;

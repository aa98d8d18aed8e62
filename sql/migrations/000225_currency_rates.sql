-- Reference rates of currencies, and how far they are collected.
set local role runner_owner;

-- Not a tenant's: what a central bank publishes is the same for all. The key serves "the newest rate of a currency up to a day".
-- The euro is among them, with 1 on each day that has rates: so a rate between any two currencies is a quotient of one day.
create table app.currency_rates (
  currency text not null,
  day date not null,
  rate numeric not null,
  constraint currency_rates_pkey primary key (currency, day),
  constraint currency_rates_currency_check check (currency ~ '^[A-Z]{3}$'),
  -- NaN is above every number, so the upper bound refuses it.
  constraint currency_rates_rate_check check (rate > 0 and rate < 1000000000000),
  constraint currency_rates_euro_is_one_check check (currency <> 'EUR' or rate = 1)
);
grant select, insert, update on app.currency_rates to runner_global;
grant select on app.currency_rates to runner_api;
grant select (currency, day, rate) on app.currency_rates to runner_admin;

comment on table app.currency_rates is
  'Euro foreign exchange reference rates of the European Central Bank, for all organizations. A day without a rate is a gap.';
comment on column app.currency_rates.currency is 'Three letters (ISO 4217).';
comment on column app.currency_rates.day is 'The day that the bank gives the rate for.';
comment on column app.currency_rates.rate is 'What one euro is worth in the currency, with the digits that the bank gives.';

-- One row: when the bank is asked next, and who asks it now.
create table app.currency_rate_sources (
  key text not null,
  due_at timestamptz not null default now(),
  fence integer not null default 0,
  lease_expires_at timestamptz,
  newest_day date,
  history_loaded_at timestamptz,
  looked_at timestamptz,
  failure_count integer not null default 0,
  error_code text,
  constraint currency_rate_sources_pkey primary key (key),
  constraint currency_rate_sources_key_check check (key = 'ecb'),
  constraint currency_rate_sources_fence_check check (fence >= 0),
  constraint currency_rate_sources_failure_count_check check (failure_count >= 0),
  constraint currency_rate_sources_error_when_failing_check check ((failure_count > 0) = (error_code is not null)),
  constraint currency_rate_sources_error_code_check check (error_code ~ '^[a-z_]{1,64}$')
);
insert into app.currency_rate_sources (key) values ('ecb');
grant select, update on app.currency_rate_sources to runner_global;
grant select on app.currency_rate_sources to runner_jobs;
grant select (key, due_at, fence, lease_expires_at, newest_day, history_loaded_at, looked_at, failure_count, error_code)
  on app.currency_rate_sources to runner_admin;

comment on table app.currency_rate_sources is 'How far the reference rates are collected: one row.';
comment on column app.currency_rate_sources.key is 'Always ecb.';
comment on column app.currency_rate_sources.due_at is 'When rates are looked for next.';
comment on column app.currency_rate_sources.fence is 'Rises with each lease; what is stored for an older one is refused.';
comment on column app.currency_rate_sources.lease_expires_at is 'Until when whoever looks has time; null: nobody looks.';
comment on column app.currency_rate_sources.newest_day is 'The last day that has rates; null: none are there yet.';
comment on column app.currency_rate_sources.history_loaded_at is 'When the whole history was last read to its end.';
comment on column app.currency_rate_sources.looked_at is 'When rates were last looked for without a failure.';
comment on column app.currency_rate_sources.failure_count is 'Failures in a row.';
comment on column app.currency_rate_sources.error_code is 'Of the last failure; null after a success.';

reset role;

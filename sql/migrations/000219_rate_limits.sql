-- Budgets of outgoing requests.
set local role runner_owner;

-- Not a tenant's: accounts of providers and our own clients at them are limited whoever calls. A row is one time: when the
-- bucket is full again. So one comparison and one addition take a token, and an unused row says the same as none.
create table app.rate_limit_buckets (
  key text not null,
  full_at timestamptz not null,
  retry_not_before timestamptz,
  constraint rate_limit_buckets_pkey primary key (key),
  constraint rate_limit_buckets_key_check check (length(key) between 1 and 200)
);
create index rate_limit_buckets_full_at_idx on app.rate_limit_buckets (full_at);
grant select, insert, update, delete on app.rate_limit_buckets to runner_global;

comment on table app.rate_limit_buckets is
  'Budgets of outgoing requests: of an account at a provider, and of our client there.';
comment on column app.rate_limit_buckets.key is 'Whose budget; accounts by digest.';
comment on column app.rate_limit_buckets.full_at is 'When all of it is there again.';
comment on column app.rate_limit_buckets.retry_not_before is 'The provider asked not to be called before.';

reset role;

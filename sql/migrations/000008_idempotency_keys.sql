-- First answers of POSTs that carried an Idempotency-Key. No foreign key: an organization's own creation has one too.
set local role runner_owner;

create table app.idempotency_keys (
  organization_id uuid not null,
  caller text not null,
  method text not null,
  path text not null,
  key text not null,
  body_hash text not null,
  status_code integer,
  answer jsonb,
  created_at timestamptz not null default now(),
  constraint idempotency_keys_pkey primary key (organization_id, caller, method, path, key),
  constraint idempotency_keys_key_check check (length(key) between 1 and 200),
  constraint idempotency_keys_answer_check check ((status_code is null) = (answer is null))
);
create index idempotency_keys_created_at_idx on app.idempotency_keys (created_at);
alter table app.idempotency_keys enable row level security;
alter table app.idempotency_keys force row level security;
create policy owner_all on app.idempotency_keys to runner_owner using (true) with check (true);
create policy scoped_all on app.idempotency_keys to runner_scoped
  using (organization_id = (select app.current_organization()))
  with check (organization_id = (select app.current_organization()));
create policy global_all on app.idempotency_keys to runner_global using (true) with check (true);
grant select, insert, update, delete on app.idempotency_keys to runner_scoped;
grant select, update, delete on app.idempotency_keys to runner_global;

reset role;

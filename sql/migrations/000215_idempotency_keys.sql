-- First responses of POSTs that carried an Idempotency-Key. No foreign key: an organization's own creation has one too.
set local role runner_owner;

create table app.idempotency_keys (
  organization_id uuid not null,
  caller text not null,
  method text not null,
  path text not null,
  key text not null,
  body_hash text not null,
  status_code integer,
  response jsonb,
  claim_id uuid,
  claimed_until timestamptz,
  created_at timestamptz not null default now(),
  constraint idempotency_keys_pkey primary key (organization_id, caller, method, path, key),
  constraint idempotency_keys_key_check check (length(key) between 1 and 200),
  constraint idempotency_keys_response_check check ((status_code is null) = (response is null)),
  constraint idempotency_keys_claim_check check (
    (claim_id is null) = (claimed_until is null) and (claim_id is null or status_code is null))
);
create index idempotency_keys_created_at_idx on app.idempotency_keys (organization_id, created_at);

alter table app.idempotency_keys enable row level security;
alter table app.idempotency_keys force row level security;
create policy owner_all on app.idempotency_keys to runner_owner using (true) with check (true);
create policy scoped_all on app.idempotency_keys to runner_scoped
  using (organization_id = (select app.current_organization()))
  with check (organization_id = (select app.current_organization()));
create policy global_all on app.idempotency_keys to runner_global using (true) with check (true);
grant select, insert, update, delete on app.idempotency_keys to runner_scoped;
grant select, update, delete on app.idempotency_keys to runner_global;
-- Not sampled: no plan is made by it, and EXPLAIN tells estimates of all tenants.
alter table app.idempotency_keys alter response set statistics 0;

comment on table app.idempotency_keys is 'First responses of calls that carried an Idempotency-Key, kept for a day.';
comment on column app.idempotency_keys.organization_id is 'The organization that was called about.';
comment on column app.idempotency_keys.caller is 'operator, owner:<subject>, or a digest of the capability.';
comment on column app.idempotency_keys.method is 'Method of the call.';
comment on column app.idempotency_keys.path is 'Path of the call.';
comment on column app.idempotency_keys.key is 'Chosen by the caller.';
comment on column app.idempotency_keys.body_hash is 'Digest of the body: another body with the same key is refused.';
comment on column app.idempotency_keys.status_code is 'Status of the first response; null while the call is in progress.';
comment on column app.idempotency_keys.response is 'The first response; never shown.';
comment on column app.idempotency_keys.claim_id is 'The call in progress that does more than change the database; null for others.';
comment on column app.idempotency_keys.claimed_until is 'When another call may take the key over.';
comment on column app.idempotency_keys.created_at is 'When it was made.';

reset role;

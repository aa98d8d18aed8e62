-- Insights: who merges the files of a month, and what became of that.
set local role runner_owner;

create table app.insight_compactions (
  organization_id uuid not null,
  source_id uuid not null,
  month text not null,
  -- Of the newest claim, whether it has ended or not.
  compaction_id uuid,
  fence bigint not null default 0,
  lease_expires_at timestamptz,
  segments jsonb not null default '[]',
  is_whole boolean not null default false,
  revision bigint,
  due_at timestamptz,
  failure_count integer not null default 0,
  last_error jsonb,
  compacted_at timestamptz,
  constraint insight_compactions_pkey primary key (organization_id, source_id, month),
  constraint insight_compactions_source_id_fkey foreign key (organization_id, source_id)
    references app.insight_sources (organization_id, id) on delete cascade,
  constraint insight_compactions_month_check check (month ~ '^\d{4}-(0[1-9]|1[0-2])$'),
  constraint insight_compactions_fence_check check (fence >= 0),
  constraint insight_compactions_segments_check check (jsonb_typeof(segments) = 'array'),
  constraint insight_compactions_lease_check check ((lease_expires_at is null) = (segments = '[]')),
  constraint insight_compactions_claimed_check check (lease_expires_at is null or compaction_id is not null),
  constraint insight_compactions_failure_count_check check (failure_count >= 0)
);

alter table app.insight_compactions enable row level security;
alter table app.insight_compactions force row level security;
create policy owner_all on app.insight_compactions to runner_owner using (true) with check (true);
create policy scoped_all on app.insight_compactions to runner_scoped
  using (organization_id = (select app.current_organization()))
  with check (organization_id = (select app.current_organization()));
create policy tenant_read on app.insight_compactions for select to runner_api, runner_jobs
  using (organization_id = (select app.current_organization()));
create policy global_read on app.insight_compactions for select to runner_global using (true);
create policy admin_read on app.insight_compactions for select to runner_admin
  using (((select app.current_organization()) is null or organization_id = (select app.current_organization()))
    and organization_id <> all ((select app.organizations_deleted())::uuid[]));
grant select, insert, update, delete on app.insight_compactions to runner_scoped;
grant select on app.insight_compactions to runner_api, runner_jobs;
grant select (organization_id, source_id, month, lease_expires_at, due_at)
  on app.insight_compactions to runner_global;
grant select (organization_id, source_id, month, lease_expires_at, is_whole, revision, due_at, failure_count, last_error, compacted_at)
  on app.insight_compactions to runner_admin;
-- Not sampled: no plan is made by it, and EXPLAIN tells estimates of all tenants.
alter table app.insight_compactions
  alter segments set statistics 0,
  alter last_error set statistics 0;

comment on table app.insight_compactions is
  'Months of sources whose files are merged: who does it, and what became of it.';
comment on column app.insight_compactions.organization_id is 'The organization it belongs to.';
comment on column app.insight_compactions.source_id is 'The source.';
comment on column app.insight_compactions.month is 'The month of its files.';
comment on column app.insight_compactions.compaction_id is 'The newest claim, by which its file is named; null: there was none.';
comment on column app.insight_compactions.fence is 'The number of that claim.';
comment on column app.insight_compactions.lease_expires_at is 'When its lease ends; null: it has ended.';
comment on column app.insight_compactions.segments is 'The ids of what it merges; empty once it has ended.';
comment on column app.insight_compactions.is_whole is 'Those are all files of the month.';
comment on column app.insight_compactions.revision is 'What the newest claim published; null: nothing.';
comment on column app.insight_compactions.due_at is 'Not before then; null: at any time.';
comment on column app.insight_compactions.failure_count is 'Failures in a row.';
comment on column app.insight_compactions.last_error is '{code, message, at} of the last one; null: it works.';
comment on column app.insight_compactions.compacted_at is 'When files were last merged.';

reset role;

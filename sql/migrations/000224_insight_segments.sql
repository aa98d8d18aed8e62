-- Insights: the units of collecting, the files that hold facts, and what is published of them.
set local role runner_owner;

create table app.insight_units (
  organization_id uuid not null,
  id uuid not null,
  integration_id uuid not null,
  source_id uuid,
  mode app.insight_unit_mode not null,
  state app.insight_unit_state not null default 'leased',
  fence bigint not null,
  -- What it was claimed for: under another one it commits nothing.
  generation_digest text not null,
  pages integer not null default 0,
  records integer not null default 0,
  bytes bigint not null default 0,
  changed integer not null default 0,
  revision bigint,
  error jsonb,
  started_at timestamptz not null default now(),
  ended_at timestamptz,
  constraint insight_units_pkey primary key (organization_id, id),
  constraint insight_units_integration_id_fkey foreign key (organization_id, integration_id)
    references app.insight_connectors (organization_id, integration_id) on delete cascade,
  constraint insight_units_source_id_fkey foreign key (organization_id, source_id)
    references app.insight_sources (organization_id, id) on delete cascade,
  constraint insight_units_source_unless_discovery_check check ((source_id is null) = (mode = 'discovery')),
  constraint insight_units_ended_check check ((state = 'leased') = (ended_at is null)),
  constraint insight_units_generation_digest_check check (generation_digest ~ '^[0-9a-f]{64}$')
);
create index insight_units_integration_id_idx on app.insight_units (organization_id, integration_id);
create index insight_units_source_id_idx on app.insight_units (organization_id, source_id, started_at desc);
-- Ended ones are removed after a month.
create index insight_units_ended_at_idx on app.insight_units (ended_at) where ended_at is not null;
create index insight_units_ended_at_turns_idx on app.insight_units (organization_id, ended_at) where ended_at is not null;

alter table app.insight_units enable row level security;
alter table app.insight_units force row level security;
create policy owner_all on app.insight_units to runner_owner using (true) with check (true);
create policy scoped_all on app.insight_units to runner_scoped
  using (organization_id = (select app.current_organization()))
  with check (organization_id = (select app.current_organization()));
create policy tenant_read on app.insight_units for select to runner_api, runner_jobs
  using (organization_id = (select app.current_organization()));
create policy global_all on app.insight_units to runner_global using (true) with check (true);
create policy admin_read on app.insight_units for select to runner_admin
  using (((select app.current_organization()) is null or organization_id = (select app.current_organization()))
    and organization_id <> all ((select app.organizations_deleted())::uuid[]));
create policy report_read on app.insight_units for select to runner_report
  using (app.report_shows(organization_id,
      (select pg_has_role(session_user, 'runner_report', 'member')
        or exists (select from app.analysts a where a.login = session_user::text
          and a.login_oid = to_regrole(quote_ident(session_user))::oid::bigint and a.all_organizations)),
      array(select g.organization_id from app.analyst_grants g where g.login = session_user::text
        and g.login_oid = to_regrole(quote_ident(session_user))::oid::bigint))
    and organization_id = any (array(select o.id from app.organizations o)));
grant select, insert, update, delete on app.insight_units to runner_scoped;
grant select on app.insight_units to runner_api, runner_jobs;
grant select (organization_id, id, ended_at), delete
  on app.insight_units to runner_global;
grant select (organization_id, id, integration_id, source_id, mode, state, pages, records, bytes, changed, revision, error,
  started_at, ended_at)
  on app.insight_units to runner_admin;
grant select (organization_id, id, integration_id, source_id, mode, state, pages, records, bytes, changed, revision, error,
  started_at, ended_at)
  on app.insight_units to runner_report;
-- Not sampled: no plan is made by it, and EXPLAIN tells estimates of all tenants.
alter table app.insight_units
  alter generation_digest set statistics 0,
  alter pages set statistics 0,
  alter records set statistics 0,
  alter bytes set statistics 0,
  alter changed set statistics 0,
  alter error set statistics 0;

comment on table app.insight_units is
  'Units of collecting: one claim of one connector each, at most so many requests and so long.';
comment on column app.insight_units.organization_id is 'The organization it belongs to.';
comment on column app.insight_units.id is 'Id of the unit, which its facts name.';
comment on column app.insight_units.integration_id is 'The connector.';
comment on column app.insight_units.source_id is 'The source; null: it looks for sources.';
comment on column app.insight_units.mode is 'What it does.';
comment on column app.insight_units.state is
  'leased: under way. discarded: what it was claimed for had changed. released: its process stopped. expired: its lease ended.';
comment on column app.insight_units.fence is 'The number of its claim.';
comment on column app.insight_units.generation_digest is 'SHA-256, in hex, of what it was claimed for.';
comment on column app.insight_units.pages is 'Requests that brought something.';
comment on column app.insight_units.records is 'What they brought.';
comment on column app.insight_units.bytes is 'How much that was.';
comment on column app.insight_units.changed is 'Facts that were new or changed.';
comment on column app.insight_units.revision is 'What it published; null: nothing.';
comment on column app.insight_units.error is '{code, message} of one that failed.';
comment on column app.insight_units.started_at is 'When it was claimed.';
comment on column app.insight_units.ended_at is 'When it ended.';

create table app.insight_segments (
  organization_id uuid not null,
  id uuid not null default app.uuid_v7(),
  source_id uuid not null,
  month text not null,
  object_key text not null,
  unit_id uuid not null,
  row_count integer not null,
  size_bytes bigint not null,
  sha256 text not null,
  min_at timestamptz not null,
  max_at timestamptz not null,
  -- Each key once, of the whole partition: a query needs to compare nothing.
  distinct_keys boolean not null default false,
  schema_version integer not null,
  -- Of a snapshot or scan that is not done: published with the rest of it, or dropped.
  staged boolean not null default false,
  published_revision bigint,
  retired_revision bigint,
  retired_at timestamptz,
  created_at timestamptz not null default now(),
  constraint insight_segments_pkey primary key (organization_id, id),
  constraint insight_segments_object_key_key unique (organization_id, object_key),
  constraint insight_segments_source_id_fkey foreign key (organization_id, source_id)
    references app.insight_sources (organization_id, id) on delete cascade,
  constraint insight_segments_month_check check (month ~ '^\d{4}-(0[1-9]|1[0-2])$'),
  constraint insight_segments_row_count_check check (row_count >= 1),
  constraint insight_segments_size_bytes_check check (size_bytes >= 1),
  constraint insight_segments_sha256_check check (sha256 ~ '^[0-9a-f]{64}$'),
  constraint insight_segments_staged_check check (staged = (published_revision is null and retired_at is null)),
  constraint insight_segments_retired_check check (retired_revision is null or retired_at is not null),
  constraint insight_segments_retired_later_check check (retired_revision > published_revision)
);
-- What a query and a collector read of a source; compaction reads its partitions.
create index insight_segments_source_id_idx on app.insight_segments (organization_id, source_id, month);
-- Months with many files that are read: these wait to be merged.
create index insight_segments_live_idx on app.insight_segments (organization_id, source_id, month)
  where not staged and retired_at is null;
-- What is removed after a day, read as due_in_turns does.
create index insight_segments_retired_at_idx on app.insight_segments (retired_at) where retired_at is not null;
create index insight_segments_retired_at_turns_idx on app.insight_segments (organization_id, retired_at)
  where retired_at is not null;

alter table app.insight_segments enable row level security;
alter table app.insight_segments force row level security;
create policy owner_all on app.insight_segments to runner_owner using (true) with check (true);
create policy scoped_all on app.insight_segments to runner_scoped
  using (organization_id = (select app.current_organization()))
  with check (organization_id = (select app.current_organization()));
create policy tenant_read on app.insight_segments for select to runner_api, runner_jobs
  using (organization_id = (select app.current_organization()));
create policy global_read on app.insight_segments for select to runner_global using (true);
create policy admin_read on app.insight_segments for select to runner_admin
  using (((select app.current_organization()) is null or organization_id = (select app.current_organization()))
    and organization_id <> all ((select app.organizations_deleted())::uuid[]));
grant select, insert, update, delete on app.insight_segments to runner_scoped;
grant select on app.insight_segments to runner_api, runner_jobs;
grant select (organization_id, id, source_id, month, row_count, size_bytes, retired_at, staged)
  on app.insight_segments to runner_global;
grant select (organization_id, id, source_id, month, row_count, size_bytes, sha256, min_at, max_at, distinct_keys, schema_version,
  staged, published_revision, retired_revision, retired_at, created_at)
  on app.insight_segments to runner_admin;
-- Not sampled: no plan is made by it, and EXPLAIN tells estimates of all tenants.
alter table app.insight_segments
  alter object_key set statistics 0,
  alter sha256 set statistics 0;

comment on table app.insight_segments is
  'Files that hold facts of a source and a month. None is ever changed.';
comment on column app.insight_segments.organization_id is 'The organization it belongs to.';
comment on column app.insight_segments.id is 'Id of the segment.';
comment on column app.insight_segments.source_id is 'The source.';
comment on column app.insight_segments.month is 'The month, in UTC, in which its facts lie: YYYY-MM.';
comment on column app.insight_segments.object_key is 'Where it lies in the object storage; never shown.';
comment on column app.insight_segments.unit_id is 'The unit, or the compaction, that wrote it.';
comment on column app.insight_segments.row_count is 'Facts in it.';
comment on column app.insight_segments.size_bytes is 'Its size.';
comment on column app.insight_segments.sha256 is 'SHA-256 of its bytes, in hex.';
comment on column app.insight_segments.min_at is 'The earliest time of its facts.';
comment on column app.insight_segments.max_at is 'The latest one.';
comment on column app.insight_segments.distinct_keys is 'It holds each key of its partition once.';
comment on column app.insight_segments.schema_version is 'What its facts look like.';
comment on column app.insight_segments.staged is 'It waits for the rest of its snapshot or scan.';
comment on column app.insight_segments.published_revision is 'The publication since which it is read; null: none yet.';
comment on column app.insight_segments.retired_revision is 'The publication since which it is not read any more.';
comment on column app.insight_segments.retired_at is 'When that was, or when it was dropped.';
comment on column app.insight_segments.created_at is 'When it was stored.';

create table app.insight_publications (
  organization_id uuid not null,
  revision bigint not null,
  source_id uuid not null,
  -- Null: a compaction, which changes nothing that is read.
  unit_id uuid,
  added integer not null,
  retired integer not null,
  published_at timestamptz not null default now(),
  constraint insight_publications_pkey primary key (organization_id, revision),
  constraint insight_publications_source_id_fkey foreign key (organization_id, source_id)
    references app.insight_sources (organization_id, id) on delete cascade,
  constraint insight_publications_revision_check check (revision >= 1),
  constraint insight_publications_counts_check check (added >= 0 and retired >= 0 and added + retired >= 1)
);
create index insight_publications_source_id_idx on app.insight_publications (organization_id, source_id);

alter table app.insight_publications enable row level security;
alter table app.insight_publications force row level security;
create policy owner_all on app.insight_publications to runner_owner using (true) with check (true);
create policy scoped_all on app.insight_publications to runner_scoped
  using (organization_id = (select app.current_organization()))
  with check (organization_id = (select app.current_organization()));
create policy tenant_read on app.insight_publications for select to runner_api, runner_jobs
  using (organization_id = (select app.current_organization()));
create policy admin_read on app.insight_publications for select to runner_admin
  using (((select app.current_organization()) is null or organization_id = (select app.current_organization()))
    and organization_id <> all ((select app.organizations_deleted())::uuid[]));
grant select, insert, update, delete on app.insight_publications to runner_scoped;
grant select on app.insight_publications to runner_api, runner_jobs;
grant select (organization_id, revision, source_id, unit_id, added, retired, published_at)
  on app.insight_publications to runner_admin;

comment on table app.insight_publications is
  'What each revision brought. Revision N sees what was published at or before N and not retired at or before N.';
comment on column app.insight_publications.organization_id is 'The organization it belongs to.';
comment on column app.insight_publications.revision is 'Its number in the organization.';
comment on column app.insight_publications.source_id is 'The source that it is of.';
comment on column app.insight_publications.unit_id is 'The unit that published; null: a compaction.';
comment on column app.insight_publications.added is 'Segments that it added.';
comment on column app.insight_publications.retired is 'Segments that it retired.';
comment on column app.insight_publications.published_at is 'When it was made.';

reset role;

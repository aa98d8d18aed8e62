-- Context: retained sources, immutable revisions of documents, what is published of them, and health reports.
-- Bytes lie in the object storage; a row says where, how many and their digest.
set local role runner_owner;

create table app.context_sources (
  organization_id uuid not null,
  -- The client's for onboarding sources.
  id uuid not null default app.uuid_v7(),
  origin text not null,
  status text not null default 'stored',
  kind text not null,
  file_name text not null,
  media_type text not null,
  size_bytes bigint not null,
  sha256 text not null,
  storage_key text not null,
  -- Null: evidence for the whole organization.
  department text,
  provenance_urls jsonb not null default '[]',
  title text,
  -- What it was made of, e.g. the page of an attempt: made again it is the same source.
  dedupe_key text,
  error jsonb,
  created_at timestamptz not null default now(),
  constraint context_sources_pkey primary key (organization_id, id),
  constraint context_sources_organization_id_fkey foreign key (organization_id)
    references app.organizations (id) on delete cascade,
  constraint context_sources_origin_check check (origin in ('onboarding', 'chat', 'task', 'research')),
  constraint context_sources_status_check check (status in ('stored', 'ingested', 'failed')),
  constraint context_sources_kind_check check (kind in ('file', 'markdown', 'page')),
  constraint context_sources_file_name_check check (length(file_name) between 1 and 255),
  constraint context_sources_size_bytes_check check (size_bytes between 0 and 52428800),
  constraint context_sources_sha256_check check (sha256 ~ '^[0-9a-f]{64}$'),
  constraint context_sources_department_check check (department in ('growth', 'engineering', 'support')),
  constraint context_sources_provenance_urls_check check (jsonb_typeof(provenance_urls) = 'array'),
  constraint context_sources_dedupe_key_key unique (organization_id, dedupe_key),
  constraint context_sources_dedupe_key_check check (octet_length(dedupe_key) between 1 and 1000),
  constraint context_sources_error_when_failed_check check ((status = 'failed') = (error is not null))
);
create index context_sources_created_at_idx on app.context_sources (organization_id, created_at, id);
create index context_sources_status_idx on app.context_sources (organization_id, status, created_at, id);

-- Evidence stays what it was: only the status and its error change.
create function app.context_sources_keep() returns trigger
  language plpgsql set search_path = pg_catalog, pg_temp
  as $$
begin
  if to_jsonb(new) - 'status' - 'error' <> to_jsonb(old) - 'status' - 'error' then
    raise exception 'source % is immutable', old.id;
  end if;
  return new;
end
$$;
revoke all on function app.context_sources_keep() from public;
create trigger context_sources_keep before update on app.context_sources
  for each row execute function app.context_sources_keep();

alter table app.context_sources enable row level security;
alter table app.context_sources force row level security;
create policy owner_all on app.context_sources to runner_owner using (true) with check (true);
create policy scoped_all on app.context_sources to runner_scoped
  using (organization_id = (select app.current_organization()))
  with check (organization_id = (select app.current_organization()));
create policy tenant_read on app.context_sources for select to runner_api, runner_jobs
  using (organization_id = (select app.current_organization()));
grant select, insert, update, delete on app.context_sources to runner_scoped;
grant select on app.context_sources to runner_api, runner_jobs;

create table app.context_revisions (
  organization_id uuid not null,
  scope text not null,
  revision integer not null,
  -- What it was made from; 0: nothing was published before.
  base_revision integer not null,
  -- {kind: owner | service | agent, runId?, taskId?, agentProfileId?}
  created_by jsonb not null,
  created_at timestamptz not null default now(),
  constraint context_revisions_pkey primary key (organization_id, scope, revision),
  constraint context_revisions_organization_id_fkey foreign key (organization_id)
    references app.organizations (id) on delete cascade,
  constraint context_revisions_scope_check check (scope in ('organization', 'growth', 'engineering', 'support')),
  constraint context_revisions_revision_check check (revision >= 1 and base_revision = revision - 1)
);

-- Revisions, their documents and health reports are written once.
create function app.context_rows_keep() returns trigger
  language plpgsql set search_path = pg_catalog, pg_temp
  as $$
begin
  if new is distinct from old then
    raise exception 'rows of % are immutable', tg_table_name;
  end if;
  return new;
end
$$;
revoke all on function app.context_rows_keep() from public;
create trigger context_revisions_keep before update on app.context_revisions
  for each row execute function app.context_rows_keep();

alter table app.context_revisions enable row level security;
alter table app.context_revisions force row level security;
create policy owner_all on app.context_revisions to runner_owner using (true) with check (true);
create policy scoped_all on app.context_revisions to runner_scoped
  using (organization_id = (select app.current_organization()))
  with check (organization_id = (select app.current_organization()));
create policy tenant_read on app.context_revisions for select to runner_api, runner_jobs
  using (organization_id = (select app.current_organization()));
grant select, insert, update, delete on app.context_revisions to runner_scoped;
grant select on app.context_revisions to runner_api, runner_jobs;

create table app.context_documents (
  organization_id uuid not null,
  scope text not null,
  revision integer not null,
  path text not null,
  kind text not null,
  storage_key text not null,
  size_bytes bigint not null,
  sha256 text not null,
  -- Sources that its entries cite as evidence.
  source_ids jsonb not null default '[]',
  constraint context_documents_pkey primary key (organization_id, scope, revision, path),
  constraint context_documents_scope_revision_fkey foreign key (organization_id, scope, revision)
    references app.context_revisions (organization_id, scope, revision) on delete cascade,
  constraint context_documents_kind_check check (kind in ('facts', 'strategy', 'processes', 'glossary', 'notes')),
  constraint context_documents_path_check check (length(path) between 1 and 900),
  constraint context_documents_size_bytes_check check (size_bytes between 0 and 1048576),
  constraint context_documents_sha256_check check (sha256 ~ '^[0-9a-f]{64}$'),
  constraint context_documents_source_ids_check check (jsonb_typeof(source_ids) = 'array')
);
create trigger context_documents_keep before update on app.context_documents
  for each row execute function app.context_rows_keep();
alter table app.context_documents enable row level security;
alter table app.context_documents force row level security;
create policy owner_all on app.context_documents to runner_owner using (true) with check (true);
create policy scoped_all on app.context_documents to runner_scoped
  using (organization_id = (select app.current_organization()))
  with check (organization_id = (select app.current_organization()));
create policy tenant_read on app.context_documents for select to runner_api, runner_jobs
  using (organization_id = (select app.current_organization()));
grant select, insert, update, delete on app.context_documents to runner_scoped;
grant select on app.context_documents to runner_api, runner_jobs;

-- The published revision of a scope: a pointer, moved under its row's lock.
create table app.context_publications (
  organization_id uuid not null,
  scope text not null,
  -- Null only inside the transaction of the first promotion.
  revision integer,
  published_at timestamptz not null default now(),
  constraint context_publications_pkey primary key (organization_id, scope),
  constraint context_publications_scope_revision_fkey foreign key (organization_id, scope, revision)
    references app.context_revisions (organization_id, scope, revision) on delete cascade
);
create index context_publications_revision_idx on app.context_publications (organization_id, scope, revision);
alter table app.context_publications enable row level security;
alter table app.context_publications force row level security;
create policy owner_all on app.context_publications to runner_owner using (true) with check (true);
create policy scoped_all on app.context_publications to runner_scoped
  using (organization_id = (select app.current_organization()))
  with check (organization_id = (select app.current_organization()));
create policy global_read on app.context_publications for select to runner_global using (true);
create policy tenant_read on app.context_publications for select to runner_api, runner_jobs
  using (organization_id = (select app.current_organization()));
grant select, insert, update, delete on app.context_publications to runner_scoped;
grant select on app.context_publications to runner_global, runner_api, runner_jobs;

-- Health reports: immutable stored files, numbered per organization.
create table app.context_health_reports (
  organization_id uuid not null,
  revision integer not null,
  -- Of the file's format; older ones are normalized when they are read.
  version integer not null,
  assessment text not null,
  -- What was assessed: {scope: published revision}.
  context jsonb not null,
  storage_key text not null,
  size_bytes bigint not null,
  sha256 text not null,
  created_at timestamptz not null default now(),
  constraint context_health_reports_pkey primary key (organization_id, revision),
  constraint context_health_reports_organization_id_fkey foreign key (organization_id)
    references app.organizations (id) on delete cascade,
  constraint context_health_reports_revision_check check (revision >= 1),
  constraint context_health_reports_version_check check (version between 1 and 3),
  constraint context_health_reports_assessment_check
    check (assessment in ('full_audit', 'integration_reconciliation')),
  constraint context_health_reports_context_check check (jsonb_typeof(context) = 'object'),
  constraint context_health_reports_size_bytes_check check (size_bytes between 0 and 16777216),
  constraint context_health_reports_sha256_check check (sha256 ~ '^[0-9a-f]{64}$')
);
create index context_health_reports_assessment_idx
  on app.context_health_reports (organization_id, assessment, revision);
create trigger context_health_reports_keep before update on app.context_health_reports
  for each row execute function app.context_rows_keep();
alter table app.context_health_reports enable row level security;
alter table app.context_health_reports force row level security;
create policy owner_all on app.context_health_reports to runner_owner using (true) with check (true);
create policy scoped_all on app.context_health_reports to runner_scoped
  using (organization_id = (select app.current_organization()))
  with check (organization_id = (select app.current_organization()));
create policy global_read on app.context_health_reports for select to runner_global using (true);
create policy tenant_read on app.context_health_reports for select to runner_api, runner_jobs
  using (organization_id = (select app.current_organization()));
grant select, insert, update, delete on app.context_health_reports to runner_scoped;
grant select on app.context_health_reports to runner_global, runner_api, runner_jobs;

reset role;

-- Context: retained sources, immutable revisions of documents, what is published of them, and health reports.
-- Bytes lie in the object storage; a row says where, how many and their digest.
set local role runner_owner;

create domain app.context_source_origin as text constraint context_source_origin_check
  check (value in ('onboarding', 'chat', 'task', 'research'));
create domain app.context_source_status as text constraint context_source_status_check
  check (value in ('stored', 'ingested', 'failed'));
create domain app.context_source_kind as text constraint context_source_kind_check
  check (value in ('file', 'markdown', 'page'));

create table app.context_sources (
  organization_id uuid not null,
  -- The client's for onboarding sources.
  id uuid not null default app.uuid_v7(),
  origin app.context_source_origin not null,
  status app.context_source_status not null default 'stored',
  kind app.context_source_kind not null,
  file_name text not null,
  media_type text not null,
  size_bytes bigint not null,
  sha256 text not null,
  storage_key text not null,
  -- Null: evidence for the whole organization.
  department app.department,
  provenance_urls jsonb not null default '[]',
  title text,
  -- Of a page: its text as people and the context see it, without markup. The stored bytes keep theirs.
  excerpt text,
  page_text text,
  -- What it was made of, e.g. the page of an attempt: made again it is the same source.
  dedupe_key text,
  error jsonb,
  created_at timestamptz not null default now(),
  constraint context_sources_pkey primary key (organization_id, id),
  constraint context_sources_dedupe_key_key unique (organization_id, dedupe_key),
  constraint context_sources_organization_id_fkey foreign key (organization_id)
    references app.organizations (id) on delete cascade,
  constraint context_sources_file_name_check check (length(file_name) between 1 and 255),
  constraint context_sources_size_bytes_check check (size_bytes between 0 and 52428800),
  constraint context_sources_sha256_check check (sha256 ~ '^[0-9a-f]{64}$'),
  constraint context_sources_provenance_urls_check check (jsonb_typeof(provenance_urls) = 'array'),
  constraint context_sources_excerpt_check check (length(excerpt) <= 400),
  constraint context_sources_page_text_check check (length(page_text) <= 2000),
  constraint context_sources_dedupe_key_check check (octet_length(dedupe_key) between 1 and 1000),
  constraint context_sources_error_when_failed_check check ((status = 'failed') = (error is not null))
);
create index context_sources_created_at_idx on app.context_sources (organization_id, created_at, id);
create index context_sources_status_idx on app.context_sources (organization_id, status, created_at, id);

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
create policy admin_read on app.context_sources for select to runner_admin
  using (((select app.current_organization()) is null or organization_id = (select app.current_organization()))
    and organization_id <> all ((select app.organizations_deleted())::uuid[]));
create policy report_read on app.context_sources for select to runner_report
  using (app.report_shows(organization_id,
      (select pg_has_role(session_user, 'runner_report', 'member')
        or exists (select from app.analysts a where a.login = session_user::text
          and a.login_oid = to_regrole(quote_ident(session_user))::oid::bigint and a.all_organizations)),
      array(select g.organization_id from app.analyst_grants g where g.login = session_user::text
        and g.login_oid = to_regrole(quote_ident(session_user))::oid::bigint))
    and organization_id = any (array(select o.id from app.organizations o)));
grant select, insert, update, delete on app.context_sources to runner_scoped;
grant select on app.context_sources to runner_api, runner_jobs;
grant select (organization_id, id, origin, status, kind, file_name, media_type, size_bytes, sha256, department,
  provenance_urls, title, excerpt, page_text, error, created_at)
  on app.context_sources to runner_admin;
grant select (organization_id, origin, status)
  on app.context_sources to runner_report;
-- Not sampled: no plan is made by it, and EXPLAIN tells estimates of all tenants.
alter table app.context_sources alter provenance_urls set statistics 0, alter excerpt set statistics 0,
  alter page_text set statistics 0, alter error set statistics 0;

comment on table app.context_sources is 'Retained evidence. It never changes.';
comment on column app.context_sources.organization_id is 'The organization it belongs to.';
comment on column app.context_sources.id is 'Id of the source.';
comment on column app.context_sources.origin is 'Where it came from.';
comment on column app.context_sources.status is 'Only ingested ones ground what is published.';
comment on column app.context_sources.kind is 'What it is.';
comment on column app.context_sources.file_name is 'As it was called.';
comment on column app.context_sources.media_type is 'As its content says.';
comment on column app.context_sources.size_bytes is 'In bytes.';
comment on column app.context_sources.sha256 is 'SHA-256 of the bytes, in hex.';
comment on column app.context_sources.storage_key is 'Where the bytes lie in the object storage; never shown.';
comment on column app.context_sources.department is 'The department it is about; null: the whole organization.';
comment on column app.context_sources.provenance_urls is 'Where it was found.';
comment on column app.context_sources.title is 'Its own title.';
comment on column app.context_sources.excerpt is 'Of a page: a few sentences, or that it has no text.';
comment on column app.context_sources.page_text is 'Of a page: the beginning of its main text, which is what is published of it.';
comment on column app.context_sources.dedupe_key is 'What it was made of: made again it is the same source.';
comment on column app.context_sources.error is 'Why it could not be used.';
comment on column app.context_sources.created_at is 'When it was made.';

create domain app.context_scope as text constraint context_scope_check
  check (value in ('organization', 'growth', 'engineering', 'support'));

create table app.context_revisions (
  organization_id uuid not null,
  scope app.context_scope not null,
  revision integer not null,
  -- What it was made from; 0: nothing was published before.
  base_revision integer not null,
  -- {kind: owner | service | agent, runId?, taskId?, agentProfileId?}
  created_by jsonb not null,
  created_at timestamptz not null default now(),
  constraint context_revisions_pkey primary key (organization_id, scope, revision),
  constraint context_revisions_organization_id_fkey foreign key (organization_id)
    references app.organizations (id) on delete cascade,
  constraint context_revisions_revision_check check (revision >= 1 and base_revision = revision - 1)
);

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
create policy admin_read on app.context_revisions for select to runner_admin
  using (((select app.current_organization()) is null or organization_id = (select app.current_organization()))
    and organization_id <> all ((select app.organizations_deleted())::uuid[]));
create policy report_read on app.context_revisions for select to runner_report
  using (app.report_shows(organization_id,
      (select pg_has_role(session_user, 'runner_report', 'member')
        or exists (select from app.analysts a where a.login = session_user::text
          and a.login_oid = to_regrole(quote_ident(session_user))::oid::bigint and a.all_organizations)),
      array(select g.organization_id from app.analyst_grants g where g.login = session_user::text
        and g.login_oid = to_regrole(quote_ident(session_user))::oid::bigint))
    and organization_id = any (array(select o.id from app.organizations o)));
grant select, insert, update, delete on app.context_revisions to runner_scoped;
grant select on app.context_revisions to runner_api, runner_jobs;
grant select (organization_id, scope, revision, base_revision, created_by, created_at)
  on app.context_revisions to runner_admin;
grant select (organization_id, scope, revision, base_revision, created_by, created_at)
  on app.context_revisions to runner_report;
-- Not sampled: no plan is made by it, and EXPLAIN tells estimates of all tenants.
alter table app.context_revisions alter created_by set statistics 0;

comment on table app.context_revisions is
  'What an organization knows of itself, as it was published. A revision never changes.';
comment on column app.context_revisions.organization_id is 'The organization it belongs to.';
comment on column app.context_revisions.scope is 'The whole organization, or a department.';
comment on column app.context_revisions.revision is 'Its number in its scope.';
comment on column app.context_revisions.base_revision is 'The one it was made from; 0: the first.';
comment on column app.context_revisions.created_by is 'Who published it.';
comment on column app.context_revisions.created_at is 'When it was made.';

create domain app.context_document_kind as text constraint context_document_kind_check
  check (value in ('facts', 'strategy', 'processes', 'glossary', 'notes'));

create table app.context_documents (
  organization_id uuid not null,
  scope app.context_scope not null,
  revision integer not null,
  path text not null,
  kind app.context_document_kind not null,
  storage_key text not null,
  size_bytes bigint not null,
  sha256 text not null,
  -- Sources that its entries cite as evidence.
  source_ids jsonb not null default '[]',
  constraint context_documents_pkey primary key (organization_id, scope, revision, path),
  constraint context_documents_scope_revision_fkey foreign key (organization_id, scope, revision)
    references app.context_revisions (organization_id, scope, revision) on delete cascade,
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
create policy admin_read on app.context_documents for select to runner_admin
  using (((select app.current_organization()) is null or organization_id = (select app.current_organization()))
    and organization_id <> all ((select app.organizations_deleted())::uuid[]));
create policy report_read on app.context_documents for select to runner_report
  using (app.report_shows(organization_id,
      (select pg_has_role(session_user, 'runner_report', 'member')
        or exists (select from app.analysts a where a.login = session_user::text
          and a.login_oid = to_regrole(quote_ident(session_user))::oid::bigint and a.all_organizations)),
      array(select g.organization_id from app.analyst_grants g where g.login = session_user::text
        and g.login_oid = to_regrole(quote_ident(session_user))::oid::bigint))
    and organization_id = any (array(select o.id from app.organizations o)));
grant select, insert, update, delete on app.context_documents to runner_scoped;
grant select on app.context_documents to runner_api, runner_jobs;
grant select (organization_id, scope, revision, path, kind, size_bytes, sha256, source_ids)
  on app.context_documents to runner_admin;
grant select (organization_id, scope, revision, size_bytes)
  on app.context_documents to runner_report;
-- Not sampled: no plan is made by it, and EXPLAIN tells estimates of all tenants.
alter table app.context_documents alter size_bytes set statistics 0, alter source_ids set statistics 0;

comment on table app.context_documents is 'The documents of a revision.';
comment on column app.context_documents.organization_id is 'The organization it belongs to.';
comment on column app.context_documents.scope is 'Of the revision.';
comment on column app.context_documents.revision is 'The revision.';
comment on column app.context_documents.path is 'Where agents find it.';
comment on column app.context_documents.kind is 'What it holds.';
comment on column app.context_documents.storage_key is 'Where the bytes lie in the object storage; never shown.';
comment on column app.context_documents.size_bytes is 'In bytes.';
comment on column app.context_documents.sha256 is 'SHA-256 of the bytes, in hex.';
comment on column app.context_documents.source_ids is 'Sources that its entries cite.';

-- The published revision of a scope: a pointer, moved under its row's lock.
create table app.context_publications (
  organization_id uuid not null,
  scope app.context_scope not null,
  -- Null only inside the transaction of the first promotion.
  revision integer,
  -- Paths of the published revision.
  unreadable jsonb not null default '[]',
  published_at timestamptz not null default now(),
  constraint context_publications_pkey primary key (organization_id, scope),
  constraint context_publications_scope_revision_fkey foreign key (organization_id, scope, revision)
    references app.context_revisions (organization_id, scope, revision) on delete cascade,
  constraint context_publications_unreadable_check check (jsonb_typeof(unreadable) = 'array')
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
create policy admin_read on app.context_publications for select to runner_admin
  using (((select app.current_organization()) is null or organization_id = (select app.current_organization()))
    and organization_id <> all ((select app.organizations_deleted())::uuid[]));
create policy report_read on app.context_publications for select to runner_report
  using (app.report_shows(organization_id,
      (select pg_has_role(session_user, 'runner_report', 'member')
        or exists (select from app.analysts a where a.login = session_user::text
          and a.login_oid = to_regrole(quote_ident(session_user))::oid::bigint and a.all_organizations)),
      array(select g.organization_id from app.analyst_grants g where g.login = session_user::text
        and g.login_oid = to_regrole(quote_ident(session_user))::oid::bigint))
    and organization_id = any (array(select o.id from app.organizations o)));
grant select, insert, update, delete on app.context_publications to runner_scoped;
grant select on app.context_publications to runner_global, runner_api, runner_jobs;
grant select (organization_id, scope, revision, unreadable, published_at)
  on app.context_publications to runner_admin;
grant select (organization_id, scope, revision, published_at)
  on app.context_publications to runner_report;
-- Not sampled: no plan is made by it, and EXPLAIN tells estimates of all tenants.
alter table app.context_publications alter unreadable set statistics 0;

comment on table app.context_publications is 'Which revision of a scope is current.';
comment on column app.context_publications.organization_id is 'The organization it belongs to.';
comment on column app.context_publications.scope is 'The whole organization, or a department.';
comment on column app.context_publications.revision is 'The current one.';
comment on column app.context_publications.unreadable is 'Documents that the last audit could not read.';
comment on column app.context_publications.published_at is 'Since when.';

create domain app.context_assessment as text constraint context_assessment_check
  check (value in ('full_audit', 'integration_reconciliation'));

-- Health reports: immutable stored files, numbered per organization.
create table app.context_health_reports (
  organization_id uuid not null,
  revision integer not null,
  -- Of the file's format; older ones are normalized when they are read.
  version integer not null,
  assessment app.context_assessment not null,
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
create policy admin_read on app.context_health_reports for select to runner_admin
  using (((select app.current_organization()) is null or organization_id = (select app.current_organization()))
    and organization_id <> all ((select app.organizations_deleted())::uuid[]));
grant select, insert, update, delete on app.context_health_reports to runner_scoped;
grant select on app.context_health_reports to runner_global, runner_api, runner_jobs;
grant select (organization_id, revision, version, assessment, context, size_bytes, sha256, created_at)
  on app.context_health_reports to runner_admin;
-- Not sampled: no plan is made by it, and EXPLAIN tells estimates of all tenants.
alter table app.context_health_reports alter context set statistics 0;

comment on table app.context_health_reports is 'Assessments of the context. A report never changes.';
comment on column app.context_health_reports.organization_id is 'The organization it belongs to.';
comment on column app.context_health_reports.revision is 'Its number.';
comment on column app.context_health_reports.version is 'Of the format of its file.';
comment on column app.context_health_reports.assessment is 'What was assessed.';
comment on column app.context_health_reports.context is 'The revisions that were assessed, by scope.';
comment on column app.context_health_reports.storage_key is 'Where the bytes lie in the object storage; never shown.';
comment on column app.context_health_reports.size_bytes is 'In bytes.';
comment on column app.context_health_reports.sha256 is 'SHA-256 of the bytes, in hex.';
comment on column app.context_health_reports.created_at is 'When it was made.';

reset role;

-- Insights: whose facts are collected, and how far that is.
set local role runner_owner;

create domain app.insight_environment as text constraint insight_environment_check
  check (value in ('live', 'test'));
create domain app.insight_cursor_mode as text constraint insight_cursor_mode_check
  check (value in ('tail', 'backfill', 'rescan'));
create domain app.insight_unit_mode as text constraint insight_unit_mode_check
  check (value in ('discovery', 'tail', 'backfill', 'rescan'));
create domain app.insight_unit_state as text constraint insight_unit_state_check
  check (value in ('leased', 'committed', 'discarded', 'failed', 'released', 'expired'));

create table app.insight_heads (
  organization_id uuid not null,
  revision bigint not null default 0,
  updated_at timestamptz not null default now(),
  sweep_at timestamptz not null default now() + interval '1 day',
  constraint insight_heads_pkey primary key (organization_id),
  constraint insight_heads_organization_id_fkey foreign key (organization_id)
    references app.organizations (id) on delete cascade,
  constraint insight_heads_revision_check check (revision >= 0)
);
-- What is due, in the order of organizations.
create index insight_heads_sweep_at_idx on app.insight_heads (organization_id, sweep_at);

alter table app.insight_heads enable row level security;
alter table app.insight_heads force row level security;
create policy owner_all on app.insight_heads to runner_owner using (true) with check (true);
create policy scoped_all on app.insight_heads to runner_scoped
  using (organization_id = (select app.current_organization()))
  with check (organization_id = (select app.current_organization()));
create policy tenant_read on app.insight_heads for select to runner_api, runner_jobs
  using (organization_id = (select app.current_organization()));
create policy global_read on app.insight_heads for select to runner_global using (true);
create policy admin_read on app.insight_heads for select to runner_admin
  using (((select app.current_organization()) is null or organization_id = (select app.current_organization()))
    and organization_id <> all ((select app.organizations_deleted())::uuid[]));
grant select, insert, update, delete on app.insight_heads to runner_scoped;
grant select on app.insight_heads to runner_api, runner_jobs;
grant select (organization_id, revision, sweep_at)
  on app.insight_heads to runner_global;
grant select (organization_id, revision, updated_at, sweep_at)
  on app.insight_heads to runner_admin;

comment on table app.insight_heads is
  'The newest publication of an organization. Locked last, so that a revision is never seen before the one below it.';
comment on column app.insight_heads.organization_id is 'The organization it belongs to.';
comment on column app.insight_heads.revision is 'Rises by one with each publication; a query reads at one of them.';
comment on column app.insight_heads.updated_at is 'When that was.';
comment on column app.insight_heads.sweep_at is 'When files that no row names are looked for.';

create table app.insight_pseudonym_keys (
  organization_id uuid not null,
  key_id text not null,
  wrapped_key bytea not null,
  ciphertext bytea not null,
  created_at timestamptz not null default now(),
  constraint insight_pseudonym_keys_pkey primary key (organization_id),
  constraint insight_pseudonym_keys_organization_id_fkey foreign key (organization_id)
    references app.organizations (id) on delete cascade,
  constraint insight_pseudonym_keys_key_id_check check (length(key_id) between 1 and 63),
  constraint insight_pseudonym_keys_wrapped_key_check check (octet_length(wrapped_key) between 1 and 256),
  constraint insight_pseudonym_keys_ciphertext_check check (octet_length(ciphertext) between 1 and 1024)
);
-- For the rotation of keys: which records still need an old one.
create index insight_pseudonym_keys_key_id_idx on app.insight_pseudonym_keys (key_id, organization_id);

alter table app.insight_pseudonym_keys enable row level security;
alter table app.insight_pseudonym_keys force row level security;
create policy owner_all on app.insight_pseudonym_keys to runner_owner using (true) with check (true);
create policy scoped_all on app.insight_pseudonym_keys to runner_scoped
  using (organization_id = (select app.current_organization()))
  with check (organization_id = (select app.current_organization()));
create policy global_read on app.insight_pseudonym_keys for select to runner_global using (true);
grant select, insert, update, delete on app.insight_pseudonym_keys to runner_scoped;
grant select (organization_id, key_id, wrapped_key)
  on app.insight_pseudonym_keys to runner_global;
-- Not sampled: no plan is made by it, and EXPLAIN tells estimates of all tenants.
alter table app.insight_pseudonym_keys
  alter wrapped_key set statistics 0,
  alter ciphertext set statistics 0;

comment on table app.insight_pseudonym_keys is
  'What the pseudonyms of customers are made with: another key in each organization. It is wrapped anew, and never changes.';
comment on column app.insight_pseudonym_keys.organization_id is 'The organization it belongs to.';
comment on column app.insight_pseudonym_keys.key_id is 'The key that its data key is wrapped by.';
comment on column app.insight_pseudonym_keys.wrapped_key is 'Its data key, wrapped; never shown.';
comment on column app.insight_pseudonym_keys.ciphertext is 'What it protects; never shown.';
comment on column app.insight_pseudonym_keys.created_at is 'When it was made.';

create table app.insight_connectors (
  organization_id uuid not null,
  integration_id uuid not null,
  -- The least of what is due below; while it is leased, the end of that. Null: nothing is.
  due_at timestamptz,
  discovery_due_at timestamptz,
  discovered_at timestamptz,
  -- What it was discovered for: another connection or other settings have other sources.
  discovered_revision integer,
  discovered_scope text,
  failure_count integer not null default 0,
  last_error jsonb,
  retry_not_before timestamptz,
  -- One unit a connector. Rises with each claim: what comes with an older one is late.
  fence bigint not null default 0,
  unit_id uuid,
  lease_expires_at timestamptz,
  constraint insight_connectors_pkey primary key (organization_id, integration_id),
  constraint insight_connectors_integration_id_fkey foreign key (organization_id, integration_id)
    references app.integrations (organization_id, id) on delete cascade,
  constraint insight_connectors_lease_check check ((unit_id is null) = (lease_expires_at is null)),
  constraint insight_connectors_discovered_check check ((discovered_at is null) = (discovered_revision is null)
    and (discovered_at is null) = (discovered_scope is null)),
  constraint insight_connectors_failure_count_check check (failure_count >= 0),
  constraint insight_connectors_fence_check check (fence >= 0)
);
-- What is due, read as due_in_turns does.
create index insight_connectors_due_at_idx on app.insight_connectors (organization_id, due_at, integration_id)
  where due_at is not null;
create index insight_connectors_all_due_at_idx on app.insight_connectors (due_at) where due_at is not null;

alter table app.insight_connectors enable row level security;
alter table app.insight_connectors force row level security;
create policy owner_all on app.insight_connectors to runner_owner using (true) with check (true);
create policy scoped_all on app.insight_connectors to runner_scoped
  using (organization_id = (select app.current_organization()))
  with check (organization_id = (select app.current_organization()));
create policy tenant_read on app.insight_connectors for select to runner_api, runner_jobs
  using (organization_id = (select app.current_organization()));
create policy global_read on app.insight_connectors for select to runner_global using (true);
create policy admin_read on app.insight_connectors for select to runner_admin
  using (((select app.current_organization()) is null or organization_id = (select app.current_organization()))
    and organization_id <> all ((select app.organizations_deleted())::uuid[]));
grant select, insert, update, delete on app.insight_connectors to runner_scoped;
grant select on app.insight_connectors to runner_api, runner_jobs;
grant select (organization_id, integration_id, due_at, failure_count)
  on app.insight_connectors to runner_global;
grant select (organization_id, integration_id, due_at, discovery_due_at, discovered_at, discovered_revision, failure_count,
  last_error, retry_not_before, lease_expires_at)
  on app.insight_connectors to runner_admin;
-- Not sampled: no plan is made by it, and EXPLAIN tells estimates of all tenants.
alter table app.insight_connectors
  alter discovered_scope set statistics 0,
  alter last_error set statistics 0;

comment on table app.insight_connectors is
  'How the facts of an integration are collected: when it is looked at next, and who does it now.';
comment on column app.insight_connectors.organization_id is 'The organization it belongs to.';
comment on column app.insight_connectors.integration_id is 'The integration.';
comment on column app.insight_connectors.due_at is
  'When it is looked at next; while it is leased, when another one may. Null: there is nothing to do.';
comment on column app.insight_connectors.discovery_due_at is
  'When its provider is asked for sources; null: it was, and nothing has changed.';
comment on column app.insight_connectors.discovered_at is 'When it was last asked for them.';
comment on column app.insight_connectors.discovered_revision is 'The connection revision of then.';
comment on column app.insight_connectors.discovered_scope is 'SHA-256, in hex, of the settings of then.';
comment on column app.insight_connectors.failure_count is 'Failures in a row, of whatever was collected.';
comment on column app.insight_connectors.last_error is '{code, message} of the last one; null: it works.';
comment on column app.insight_connectors.retry_not_before is 'Before then its provider is not asked.';
comment on column app.insight_connectors.fence is 'The number of its last claim.';
comment on column app.insight_connectors.unit_id is 'The unit that is under way.';
comment on column app.insight_connectors.lease_expires_at is 'When its lease ends.';

create trigger integrations_wake_connectors after insert or update or delete on app.integrations
  for each row execute function app.insight_connectors_wake();
create trigger integration_connections_wake_connectors after insert or update on app.integration_connections
  for each row execute function app.insight_connectors_wake();

create table app.insight_sources (
  organization_id uuid not null,
  id uuid not null default app.uuid_v7(),
  -- Which connection collects it; null: the integration is gone, and its history stays.
  integration_id uuid,
  connector_key text not null,
  provider text not null,
  account_id text not null,
  resource_id text not null,
  dataset text not null,
  environment app.insight_environment not null,
  timezone text not null,
  -- False: the settings, or the provider, no longer name it.
  in_scope boolean not null default true,
  generation integer not null default 1,
  -- Of the generation: see insight_generation.
  connection_revision integer not null,
  scope_digest text not null,
  authorization_epoch integer not null,
  adapter_version integer not null,
  schema_version integer not null,
  coverage jsonb not null default '[]',
  last_completed_at timestamptz,
  failure_count integer not null default 0,
  last_error jsonb,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint insight_sources_pkey primary key (organization_id, id),
  constraint insight_sources_identity_key
    unique (organization_id, provider, account_id, resource_id, dataset, environment, timezone),
  constraint insight_sources_organization_id_fkey foreign key (organization_id)
    references app.organizations (id) on delete cascade,
  constraint insight_sources_integration_id_fkey foreign key (organization_id, integration_id)
    references app.integrations (organization_id, id) on delete set null (integration_id),
  constraint insight_sources_connector_key_check check (length(connector_key) between 1 and 63),
  constraint insight_sources_account_id_check check (account_id ~ '^[0-9a-f]{64}$'),
  constraint insight_sources_resource_id_check check (length(resource_id) between 1 and 200),
  constraint insight_sources_dataset_check check (length(dataset) between 1 and 63),
  constraint insight_sources_timezone_check check (length(timezone) between 1 and 63),
  constraint insight_sources_generation_check check (generation >= 1),
  constraint insight_sources_scope_digest_check check (scope_digest ~ '^[0-9a-f]{64}$'),
  constraint insight_sources_coverage_check check (jsonb_typeof(coverage) = 'array'),
  constraint insight_sources_failure_count_check check (failure_count >= 0)
);
create index insight_sources_integration_id_idx on app.insight_sources (organization_id, integration_id);

alter table app.insight_sources enable row level security;
alter table app.insight_sources force row level security;
create policy owner_all on app.insight_sources to runner_owner using (true) with check (true);
create policy scoped_all on app.insight_sources to runner_scoped
  using (organization_id = (select app.current_organization()))
  with check (organization_id = (select app.current_organization()));
create policy tenant_read on app.insight_sources for select to runner_api, runner_jobs
  using (organization_id = (select app.current_organization()));
create policy global_read on app.insight_sources for select to runner_global using (true);
create policy admin_read on app.insight_sources for select to runner_admin
  using (((select app.current_organization()) is null or organization_id = (select app.current_organization()))
    and organization_id <> all ((select app.organizations_deleted())::uuid[]));
create policy report_read on app.insight_sources for select to runner_report
  using (app.report_shows(organization_id,
      (select pg_has_role(session_user, 'runner_report', 'member')
        or exists (select from app.analysts a where a.login = session_user::text
          and a.login_oid = to_regrole(quote_ident(session_user))::oid::bigint and a.all_organizations)),
      array(select g.organization_id from app.analyst_grants g where g.login = session_user::text
        and g.login_oid = to_regrole(quote_ident(session_user))::oid::bigint))
    and organization_id = any (array(select o.id from app.organizations o)));
grant select, insert, update, delete on app.insight_sources to runner_scoped;
grant select on app.insight_sources to runner_api, runner_jobs;
grant select (organization_id, id, integration_id, in_scope, failure_count)
  on app.insight_sources to runner_global;
grant select (organization_id, id, integration_id, connector_key, provider, account_id, resource_id, dataset, environment, timezone,
  in_scope, generation, connection_revision, authorization_epoch, adapter_version, schema_version, coverage,
  last_completed_at, failure_count, last_error, created_at, updated_at)
  on app.insight_sources to runner_admin;
grant select (organization_id, id, integration_id, connector_key, provider, resource_id, dataset, environment, timezone, in_scope,
  generation, coverage, last_completed_at, failure_count, last_error, created_at, updated_at)
  on app.insight_sources to runner_report;
-- Not sampled: no plan is made by it, and EXPLAIN tells estimates of all tenants.
alter table app.insight_sources
  alter connector_key set statistics 0,
  alter provider set statistics 0,
  alter dataset set statistics 0,
  alter failure_count set statistics 0,
  alter account_id set statistics 0,
  alter resource_id set statistics 0,
  alter timezone set statistics 0,
  alter scope_digest set statistics 0,
  alter coverage set statistics 0,
  alter last_error set statistics 0;

comment on table app.insight_sources is
  'What facts are collected of: a dataset of a thing of an account at a provider.';
comment on column app.insight_sources.organization_id is 'The organization it belongs to.';
comment on column app.insight_sources.id is 'Id of the source.';
comment on column app.insight_sources.integration_id is 'The integration that collects it; null: it is gone.';
comment on column app.insight_sources.connector_key is 'The key of that integration, as it last was.';
comment on column app.insight_sources.provider is 'Whose it is.';
comment on column app.insight_sources.account_id is 'The account, recognized and not shown: SHA-256, in hex.';
comment on column app.insight_sources.resource_id is 'The thing at the provider.';
comment on column app.insight_sources.dataset is 'Which facts of it.';
comment on column app.insight_sources.environment is 'test: of the test mode of the provider.';
comment on column app.insight_sources.timezone is 'The clock of its days; another one makes another source.';
comment on column app.insight_sources.in_scope is 'Settings and provider name it.';
comment on column app.insight_sources.generation is 'Rises when what it is collected with changes.';
comment on column app.insight_sources.connection_revision is 'The connection of the generation.';
comment on column app.insight_sources.scope_digest is 'SHA-256, in hex, of its settings.';
comment on column app.insight_sources.authorization_epoch is 'Its authorizationEpoch.';
comment on column app.insight_sources.adapter_version is 'How it is collected.';
comment on column app.insight_sources.schema_version is 'What its facts look like.';
comment on column app.insight_sources.coverage is
  '[{start, end, state, reason?}]: what is known of which time, sorted and disjoint.';
comment on column app.insight_sources.last_completed_at is 'When something of it was last collected to its end.';
comment on column app.insight_sources.failure_count is 'Failures in a row.';
comment on column app.insight_sources.last_error is '{code, message, at} of the last one; null: it works.';
comment on column app.insight_sources.created_at is 'When it was discovered.';
comment on column app.insight_sources.updated_at is 'When it was last changed.';

create table app.insight_cursors (
  organization_id uuid not null,
  source_id uuid not null,
  mode app.insight_cursor_mode not null,
  cursor jsonb,
  -- What the collector itself keeps of a round: of a snapshot or a scan.
  round jsonb,
  due_at timestamptz,
  claimed_at timestamptz,
  completed_at timestamptz,
  failure_count integer not null default 0,
  constraint insight_cursors_pkey primary key (organization_id, source_id, mode),
  constraint insight_cursors_source_id_fkey foreign key (organization_id, source_id)
    references app.insight_sources (organization_id, id) on delete cascade,
  constraint insight_cursors_cursor_check check (octet_length(cursor::text) <= 16384),
  constraint insight_cursors_round_check check (octet_length(round::text) <= 65536),
  constraint insight_cursors_failure_count_check check (failure_count >= 0)
);

alter table app.insight_cursors enable row level security;
alter table app.insight_cursors force row level security;
create policy owner_all on app.insight_cursors to runner_owner using (true) with check (true);
create policy scoped_all on app.insight_cursors to runner_scoped
  using (organization_id = (select app.current_organization()))
  with check (organization_id = (select app.current_organization()));
create policy tenant_read on app.insight_cursors for select to runner_api, runner_jobs
  using (organization_id = (select app.current_organization()));
create policy admin_read on app.insight_cursors for select to runner_admin
  using (((select app.current_organization()) is null or organization_id = (select app.current_organization()))
    and organization_id <> all ((select app.organizations_deleted())::uuid[]));
create policy report_read on app.insight_cursors for select to runner_report
  using (app.report_shows(organization_id,
      (select pg_has_role(session_user, 'runner_report', 'member')
        or exists (select from app.analysts a where a.login = session_user::text
          and a.login_oid = to_regrole(quote_ident(session_user))::oid::bigint and a.all_organizations)),
      array(select g.organization_id from app.analyst_grants g where g.login = session_user::text
        and g.login_oid = to_regrole(quote_ident(session_user))::oid::bigint))
    and organization_id = any (array(select o.id from app.organizations o)));
grant select, insert, update, delete on app.insight_cursors to runner_scoped;
grant select on app.insight_cursors to runner_api, runner_jobs;
grant select (organization_id, source_id, mode, due_at, claimed_at, completed_at, failure_count)
  on app.insight_cursors to runner_admin;
grant select (organization_id, source_id, due_at) on app.insight_cursors to runner_report;
-- Not sampled: no plan is made by it, and EXPLAIN tells estimates of all tenants.
alter table app.insight_cursors
  alter cursor set statistics 0,
  alter round set statistics 0;

comment on table app.insight_cursors is
  'How far a source is collected, in each of its modes.';
comment on column app.insight_cursors.organization_id is 'The organization it belongs to.';
comment on column app.insight_cursors.source_id is 'The source.';
comment on column app.insight_cursors.mode is 'tail: what is new. backfill: the past. rescan: all of it.';
comment on column app.insight_cursors.cursor is 'Where it goes on, in the terms of its provider; null: from the beginning.';
comment on column app.insight_cursors.round is 'What is kept until the round is done; null: nothing.';
comment on column app.insight_cursors.due_at is 'When it goes on; null: it is done, or waits for another mode.';
comment on column app.insight_cursors.claimed_at is 'When it last went on.';
comment on column app.insight_cursors.completed_at is 'When a round was last done.';
comment on column app.insight_cursors.failure_count is 'Failures in a row.';

reset role;

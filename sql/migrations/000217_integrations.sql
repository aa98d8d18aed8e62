-- Integrations: what an organization connects to, its tools, the connection and its secrets.
set local role runner_owner;

create domain app.integration_status as text constraint integration_status_check
  check (value in ('enabled', 'disabled'));
create domain app.integration_access_mode as text constraint integration_access_mode_check
  check (value in ('read_only', 'full'));
create domain app.integration_discovery_status as text constraint integration_discovery_status_check
  check (value in ('ok', 'failed'));
create domain app.integration_effect as text constraint integration_effect_check
  check (value in ('read', 'write'));
create domain app.integration_risk as text constraint integration_risk_check
  check (value in ('low', 'external', 'high'));
create domain app.integration_connection_kind as text constraint integration_connection_kind_check
  check (value in ('none', 'api_key', 'bearer_token', 'github_token', 'mongodb', 'oauth1', 'oauth2'));
create domain app.integration_reauthorization_reason as text constraint integration_reauthorization_reason_check
  check (value in ('refresh_refused', 'key_lost', 'scopes_withdrawn', 'revoked', 'client_refused'));

create table app.integrations (
  organization_id uuid not null,
  id uuid not null default app.uuid_v7(),
  key text not null,
  provider text not null,
  name text not null,
  status app.integration_status not null default 'enabled',
  access_mode app.integration_access_mode not null default 'read_only',
  -- Of providers that have them: what was selected when it was authorized.
  services jsonb not null default '[]',
  -- Empty: of every department.
  departments jsonb not null default '[]',
  -- A fact of its provider, noted when it is made, so that the readiness needs no knowledge of providers.
  settings_required boolean not null,
  settings jsonb,
  context_mapping jsonb,
  -- Rises with each connection, replacement and disconnect, and outlives them: what an old tab captured never fits again.
  connection_revision integer not null default 0,
  discovery_at timestamptz,
  discovery_status app.integration_discovery_status,
  discovery_error jsonb,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint integrations_pkey primary key (organization_id, id),
  constraint integrations_key_key unique (organization_id, key),
  constraint integrations_organization_id_fkey foreign key (organization_id)
    references app.organizations (id) on delete cascade,
  constraint integrations_key_check check (key ~ '^[a-z0-9]+(-[a-z0-9]+)*$' and length(key) <= 63
    and key !~ '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$'),
  constraint integrations_provider_check check (provider ~ '^[a-z0-9]+(-[a-z0-9]+)*$' and length(provider) <= 63),
  constraint integrations_name_check check (length(name) between 1 and 200),
  constraint integrations_services_check check (jsonb_typeof(services) = 'array'),
  constraint integrations_departments_check check (jsonb_typeof(departments) = 'array'),
  constraint integrations_settings_check check (jsonb_typeof(settings) = 'object'),
  constraint integrations_context_mapping_check check (jsonb_typeof(context_mapping) = 'object'),
  constraint integrations_connection_revision_check check (connection_revision >= 0),
  constraint integrations_discovery_check check ((discovery_at is null) = (discovery_status is null)
    and (discovery_error is not null) = (discovery_status is not distinct from 'failed'))
);

create trigger integrations_raise_epoch after insert or update or delete on app.integrations
  for each row execute function app.integrations_raise_epoch();

alter table app.integrations enable row level security;
alter table app.integrations force row level security;
create policy owner_all on app.integrations to runner_owner using (true) with check (true);
create policy scoped_all on app.integrations to runner_scoped
  using (organization_id = (select app.current_organization()))
  with check (organization_id = (select app.current_organization()));
create policy tenant_read on app.integrations for select to runner_api, runner_jobs
  using (organization_id = (select app.current_organization()));
create policy admin_read on app.integrations for select to runner_admin
  using (((select app.current_organization()) is null or organization_id = (select app.current_organization()))
    and organization_id <> all ((select app.organizations_deleted())::uuid[]));
create policy report_read on app.integrations for select to runner_report
  using (app.report_shows(organization_id,
      (select pg_has_role(session_user, 'runner_report', 'member')
        or exists (select from app.analysts a where a.login = session_user::text
          and a.login_oid = to_regrole(quote_ident(session_user))::oid::bigint and a.all_organizations)),
      array(select g.organization_id from app.analyst_grants g where g.login = session_user::text
        and g.login_oid = to_regrole(quote_ident(session_user))::oid::bigint))
    and organization_id = any (array(select o.id from app.organizations o)));
grant select, insert, update, delete on app.integrations to runner_scoped;
grant select on app.integrations to runner_api, runner_jobs;
grant select (organization_id, id, key, provider, name, status, access_mode, services, departments, settings_required,
  settings, context_mapping, connection_revision, discovery_at, discovery_status, discovery_error, created_at,
  updated_at)
  on app.integrations to runner_admin;
grant select (organization_id, id, key, provider, name, status, access_mode, settings_required, settings, discovery_at,
  discovery_status, created_at, updated_at)
  on app.integrations to runner_report;
-- Not sampled: no plan is made by it, and EXPLAIN tells estimates of all tenants.
alter table app.integrations
  alter key set statistics 0,
  alter provider set statistics 0,
  alter name set statistics 0,
  alter services set statistics 0,
  alter departments set statistics 0,
  alter settings set statistics 0,
  alter context_mapping set statistics 0,
  alter discovery_error set statistics 0;

comment on table app.integrations is
  'What an organization connects to. Several may be of one provider.';
comment on column app.integrations.organization_id is 'The organization it belongs to.';
comment on column app.integrations.id is 'Id of the integration.';
comment on column app.integrations.key is 'Stable name; unique in the organization.';
comment on column app.integrations.provider is 'Whose it is: a provider of the registry.';
comment on column app.integrations.name is 'For people.';
comment on column app.integrations.status is 'disabled: its owner has turned it off; nothing uses it.';
comment on column app.integrations.access_mode is 'full: tools that write may be enabled.';
comment on column app.integrations.services is 'What was selected of the provider, when it was authorized.';
comment on column app.integrations.departments is 'Whose agents may use it; empty: all.';
comment on column app.integrations.settings_required is 'Its provider needs settings before it can be used.';
comment on column app.integrations.settings is
  'What of the provider may be reached; null: not set. They outlive a disconnect.';
comment on column app.integrations.context_mapping is 'What it means to the organization, as last asked for.';
comment on column app.integrations.connection_revision is 'Rises with each connection, replacement and disconnect.';
comment on column app.integrations.discovery_at is 'When the provider was last asked what there is.';
comment on column app.integrations.discovery_status is 'How that went.';
comment on column app.integrations.discovery_error is '{code, message} of one that failed.';
comment on column app.integrations.created_at is 'When it was made.';
comment on column app.integrations.updated_at is 'When it was last changed.';

create table app.integration_tools (
  organization_id uuid not null,
  integration_id uuid not null,
  key text not null,
  -- The provider's order.
  place integer not null,
  title text not null,
  description text not null default '',
  effect app.integration_effect not null,
  risk app.integration_risk not null,
  required_scopes jsonb not null default '[]',
  input_schema jsonb not null,
  -- Of all that an owner enables by it; another one turns the tool off.
  digest text not null,
  enabled boolean not null default false,
  -- False: the provider does not offer it any more.
  offered boolean not null default true,
  constraint integration_tools_pkey primary key (organization_id, integration_id, key),
  constraint integration_tools_integration_id_fkey foreign key (organization_id, integration_id)
    references app.integrations (organization_id, id) on delete cascade,
  constraint integration_tools_key_check check (length(key) between 1 and 128),
  constraint integration_tools_title_check check (length(title) <= 200),
  constraint integration_tools_description_check check (length(description) <= 4000),
  constraint integration_tools_required_scopes_check check (jsonb_typeof(required_scopes) = 'array'),
  constraint integration_tools_input_schema_check
    check (jsonb_typeof(input_schema) = 'object' and octet_length(input_schema::text) <= 131072),
  constraint integration_tools_digest_check check (digest ~ '^[0-9a-f]{64}$'),
  constraint integration_tools_offered_when_enabled_check check (offered or not enabled)
);

create trigger integration_tools_raise_epoch after insert or update or delete on app.integration_tools
  for each row execute function app.integration_tools_raise_epoch();

alter table app.integration_tools enable row level security;
alter table app.integration_tools force row level security;
create policy owner_all on app.integration_tools to runner_owner using (true) with check (true);
create policy scoped_all on app.integration_tools to runner_scoped
  using (organization_id = (select app.current_organization()))
  with check (organization_id = (select app.current_organization()));
create policy tenant_read on app.integration_tools for select to runner_api, runner_jobs
  using (organization_id = (select app.current_organization()));
create policy admin_read on app.integration_tools for select to runner_admin
  using (((select app.current_organization()) is null or organization_id = (select app.current_organization()))
    and organization_id <> all ((select app.organizations_deleted())::uuid[]));
create policy report_read on app.integration_tools for select to runner_report
  using (app.report_shows(organization_id,
      (select pg_has_role(session_user, 'runner_report', 'member')
        or exists (select from app.analysts a where a.login = session_user::text
          and a.login_oid = to_regrole(quote_ident(session_user))::oid::bigint and a.all_organizations)),
      array(select g.organization_id from app.analyst_grants g where g.login = session_user::text
        and g.login_oid = to_regrole(quote_ident(session_user))::oid::bigint))
    and organization_id = any (array(select o.id from app.organizations o)));
grant select, insert, update, delete on app.integration_tools to runner_scoped;
grant select on app.integration_tools to runner_api, runner_jobs;
grant select (organization_id, integration_id, key, place, title, description, effect, risk, required_scopes,
  input_schema, digest, enabled, offered)
  on app.integration_tools to runner_admin;
grant select (organization_id, integration_id, effect, enabled, offered)
  on app.integration_tools to runner_report;
-- Not sampled: no plan is made by it, and EXPLAIN tells estimates of all tenants.
alter table app.integration_tools
  alter title set statistics 0,
  alter description set statistics 0,
  alter required_scopes set statistics 0,
  alter input_schema set statistics 0;

comment on table app.integration_tools is
  'What can be done with an integration.';
comment on column app.integration_tools.organization_id is 'The organization it belongs to.';
comment on column app.integration_tools.integration_id is 'The integration.';
comment on column app.integration_tools.key is 'Its name at the provider.';
comment on column app.integration_tools.place is 'Its place among the tools.';
comment on column app.integration_tools.title is 'For people.';
comment on column app.integration_tools.description is 'What it does, in the words of the provider.';
comment on column app.integration_tools.effect is 'read: looks. write: changes something outside.';
comment on column app.integration_tools.risk is 'What an approval is asked for by.';
comment on column app.integration_tools.required_scopes is
  'One of these has to be granted; empty: any connection will do.';
comment on column app.integration_tools.input_schema is 'JSON Schema of its input.';
comment on column app.integration_tools.digest is 'SHA-256, in hex, of what its owner enabled.';
comment on column app.integration_tools.enabled is 'Its owner lets agents use it.';
comment on column app.integration_tools.offered is 'The provider offered it at the last look.';

create table app.integration_connections (
  organization_id uuid not null,
  integration_id uuid not null,
  kind app.integration_connection_kind not null,
  -- Masked by who connects it.
  account_label text,
  -- The account is compared, and never shown.
  subject_hash text,
  -- One of a tool's scopes is enough, as a wider one covers it. Null: the provider tells none, and so refuses none.
  granted_scopes jsonb,
  -- A server may refuse a call for them, and no other request.
  missing_scopes jsonb not null default '[]',
  -- Of authorizations that a provider keeps once for several connections, of any organization.
  grant_hash text,
  connected_at timestamptz not null,
  -- Rises with each rotation of tokens; the connection revision stays.
  token_version integer not null default 1,
  token_expires_at timestamptz,
  -- Ahead of the expiry, where tokens die that nobody uses.
  refresh_due_at timestamptz,
  -- One process refreshes, without a transaction that waits for the provider. Past its end another one may.
  refresh_lease_id uuid,
  refresh_lease_expires_at timestamptz,
  reauthorization_reason app.integration_reauthorization_reason,
  reauthorization_at timestamptz,
  degraded_at timestamptz,
  degraded_code text,
  checked_at timestamptz,
  check_due_at timestamptz not null,
  constraint integration_connections_pkey primary key (organization_id, integration_id),
  constraint integration_connections_integration_id_fkey foreign key (organization_id, integration_id)
    references app.integrations (organization_id, id) on delete cascade,
  constraint integration_connections_account_label_check check (length(account_label) between 1 and 200),
  constraint integration_connections_subject_hash_check check (subject_hash ~ '^[0-9a-f]{64}$'),
  constraint integration_connections_account_unless_none_check check ((kind = 'none') = (subject_hash is null)),
  constraint integration_connections_granted_scopes_check check (jsonb_typeof(granted_scopes) = 'array'),
  constraint integration_connections_missing_scopes_check
    check (jsonb_typeof(missing_scopes) = 'array' and jsonb_array_length(missing_scopes) <= 50),
  constraint integration_connections_grant_hash_check check (grant_hash ~ '^[0-9a-f]{64}$'),
  constraint integration_connections_token_version_check check (token_version >= 1),
  constraint integration_connections_refresh_lease_check
    check ((refresh_lease_id is null) = (refresh_lease_expires_at is null)),
  constraint integration_connections_reauthorization_check
    check ((reauthorization_reason is null) = (reauthorization_at is null)),
  constraint integration_connections_degraded_check check ((degraded_at is null) = (degraded_code is null))
);
-- Of all organizations: what hangs on a grant, and what is due. None is unique.
create index integration_connections_grant_hash_idx on app.integration_connections (grant_hash)
  where grant_hash is not null;
create index integration_connections_check_due_at_idx
  on app.integration_connections (organization_id, check_due_at, integration_id)
  where reauthorization_reason is null;
create index integration_connections_all_check_due_at_idx on app.integration_connections (check_due_at)
  where reauthorization_reason is null;
create index integration_connections_refresh_due_at_idx
  on app.integration_connections (organization_id, refresh_due_at, integration_id)
  where reauthorization_reason is null;
create index integration_connections_all_refresh_due_at_idx on app.integration_connections (refresh_due_at)
  where reauthorization_reason is null;

create trigger integration_connections_raise_epoch after insert or update or delete on app.integration_connections
  for each row execute function app.integration_connections_raise_epoch();

alter table app.integration_connections enable row level security;
alter table app.integration_connections force row level security;
create policy owner_all on app.integration_connections to runner_owner using (true) with check (true);
create policy scoped_all on app.integration_connections to runner_scoped
  using (organization_id = (select app.current_organization()))
  with check (organization_id = (select app.current_organization()));
create policy tenant_read on app.integration_connections for select to runner_api, runner_jobs
  using (organization_id = (select app.current_organization()));
create policy global_read on app.integration_connections for select to runner_global using (true);
create policy admin_read on app.integration_connections for select to runner_admin
  using (((select app.current_organization()) is null or organization_id = (select app.current_organization()))
    and organization_id <> all ((select app.organizations_deleted())::uuid[]));
create policy report_read on app.integration_connections for select to runner_report
  using (app.report_shows(organization_id,
      (select pg_has_role(session_user, 'runner_report', 'member')
        or exists (select from app.analysts a where a.login = session_user::text
          and a.login_oid = to_regrole(quote_ident(session_user))::oid::bigint and a.all_organizations)),
      array(select g.organization_id from app.analyst_grants g where g.login = session_user::text
        and g.login_oid = to_regrole(quote_ident(session_user))::oid::bigint))
    and organization_id = any (array(select o.id from app.organizations o)));
grant select, insert, update, delete on app.integration_connections to runner_scoped;
-- Not by what accounts and grants are compared.
grant select (organization_id, integration_id, kind, account_label, granted_scopes, connected_at, token_version,
  token_expires_at, refresh_due_at, refresh_lease_id, refresh_lease_expires_at, reauthorization_reason, reauthorization_at,
  degraded_at, degraded_code, checked_at, check_due_at)
  on app.integration_connections to runner_api, runner_jobs;
grant select (organization_id, integration_id, grant_hash, check_due_at, refresh_due_at, reauthorization_reason)
  on app.integration_connections to runner_global;
grant select (organization_id, integration_id, kind, account_label, granted_scopes, connected_at, token_version,
  token_expires_at, refresh_due_at, refresh_lease_expires_at, reauthorization_reason, reauthorization_at, degraded_at,
  degraded_code, checked_at, check_due_at)
  on app.integration_connections to runner_admin;
grant select (organization_id, integration_id, kind, connected_at, reauthorization_reason, reauthorization_at,
  degraded_at, degraded_code, checked_at)
  on app.integration_connections to runner_report;
-- Not sampled: no plan is made by it, and EXPLAIN tells estimates of all tenants.
alter table app.integration_connections
  alter account_label set statistics 0,
  alter subject_hash set statistics 0,
  alter granted_scopes set statistics 0,
  alter missing_scopes set statistics 0,
  alter grant_hash set statistics 0,
  alter degraded_code set statistics 0;

comment on table app.integration_connections is
  'The account that an integration is connected to. No row: it is not connected.';
comment on column app.integration_connections.organization_id is 'The organization it belongs to.';
comment on column app.integration_connections.integration_id is 'The integration; it has one connection at most.';
comment on column app.integration_connections.kind is 'How it was connected.';
comment on column app.integration_connections.account_label is 'The account, masked.';
comment on column app.integration_connections.subject_hash is
  'SHA-256, in hex, of the account: to see that it is the same. Null: there is none.';
comment on column app.integration_connections.granted_scopes is
  'What the provider granted; null: it does not tell.';
comment on column app.integration_connections.missing_scopes is
  'What the provider said is missing, since it was last authorized: the next time asks for it.';
comment on column app.integration_connections.grant_hash is
  'SHA-256, in hex, of the authorization at the provider, which other connections may hang on.';
comment on column app.integration_connections.connected_at is 'Since when, or since when again.';
comment on column app.integration_connections.token_version is 'Rises when the tokens are exchanged.';
comment on column app.integration_connections.token_expires_at is
  'When the token that is used expires; null: never, or unknown.';
comment on column app.integration_connections.refresh_due_at is
  'When it is refreshed although nobody uses it; null: never.';
comment on column app.integration_connections.refresh_lease_id is 'Whoever refreshes it just now.';
comment on column app.integration_connections.refresh_lease_expires_at is 'When another one may.';
comment on column app.integration_connections.reauthorization_reason is
  'Why it has to be authorized again; null: it need not.';
comment on column app.integration_connections.reauthorization_at is 'Since when.';
comment on column app.integration_connections.degraded_at is
  'Since when the provider fails or limits us; null: it works.';
comment on column app.integration_connections.degraded_code is 'With which code of ours.';
comment on column app.integration_connections.checked_at is 'When it was last found well or ill.';
comment on column app.integration_connections.check_due_at is 'When it is looked at next.';

create table app.integration_secrets (
  organization_id uuid not null,
  integration_id uuid not null,
  field text not null,
  -- The connection revision that it is bound to, as part of the associated data.
  revision integer not null,
  key_id text not null,
  wrapped_key bytea not null,
  ciphertext bytea not null,
  created_at timestamptz not null default now(),
  constraint integration_secrets_pkey primary key (organization_id, integration_id, field),
  -- Gone with the connection, at once.
  constraint integration_secrets_integration_id_fkey foreign key (organization_id, integration_id)
    references app.integration_connections (organization_id, integration_id) on delete cascade,
  constraint integration_secrets_field_check check (field ~ '^[a-z]+(_[a-z]+)*$' and length(field) <= 63),
  constraint integration_secrets_revision_check check (revision >= 1),
  constraint integration_secrets_key_id_check check (length(key_id) between 1 and 63),
  constraint integration_secrets_wrapped_key_check check (octet_length(wrapped_key) between 1 and 256),
  constraint integration_secrets_ciphertext_check check (octet_length(ciphertext) between 1 and 65536)
);
-- For the rotation of keys: which records still need an old one.
create index integration_secrets_key_id_idx on app.integration_secrets (key_id, organization_id, integration_id, field);

alter table app.integration_secrets enable row level security;
alter table app.integration_secrets force row level security;
create policy owner_all on app.integration_secrets to runner_owner using (true) with check (true);
create policy scoped_all on app.integration_secrets to runner_scoped
  using (organization_id = (select app.current_organization()))
  with check (organization_id = (select app.current_organization()));
create policy global_read on app.integration_secrets for select to runner_global using (true);
grant select, insert, update, delete on app.integration_secrets to runner_scoped;
grant select (organization_id, integration_id, field, revision, key_id, wrapped_key)
  on app.integration_secrets to runner_global;
-- Not sampled: no plan is made by it, and EXPLAIN tells estimates of all tenants.
alter table app.integration_secrets alter wrapped_key set statistics 0, alter ciphertext set statistics 0;

comment on table app.integration_secrets is
  'Encrypted credentials and tokens of connections; read by one function.';
comment on column app.integration_secrets.organization_id is 'The organization it belongs to.';
comment on column app.integration_secrets.integration_id is 'The integration.';
comment on column app.integration_secrets.field is 'Which of its secrets.';
comment on column app.integration_secrets.revision is 'The connection revision that it belongs to.';
comment on column app.integration_secrets.key_id is 'The key that its data key is wrapped by.';
comment on column app.integration_secrets.wrapped_key is 'Its data key, wrapped; never shown.';
comment on column app.integration_secrets.ciphertext is 'What it protects; never shown.';
comment on column app.integration_secrets.created_at is 'When it was stored.';

reset role;

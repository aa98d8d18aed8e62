-- What integrations begin and end with: authorizations under way, capabilities of the gateway, repairs of the context mapping.
set local role runner_owner;

create domain app.integration_oauth_result as text constraint integration_oauth_result_check
  check (value in ('connected', 'denied', 'failed', 'expired', 'conflict'));
create domain app.integration_gateway_kind as text constraint integration_gateway_kind_check
  check (value in ('cli', 'git'));
create domain app.integration_repair_status as text constraint integration_repair_status_check
  check (value in ('queued', 'applied'));

create table app.integration_oauth_states (
  organization_id uuid not null,
  id uuid not null default app.uuid_v7(),
  integration_id uuid not null,
  -- What the flow was begun for. Its end writes nothing once another revision is current.
  connection_revision integer not null,
  -- The same account authorized again keeps the revision: an older tab must not overwrite that either.
  connected_at timestamptz,
  -- Of the page that begins it; null once its button was used.
  ticket_hash text,
  -- Made with the button, as are the secrets: before that there is nothing to steal.
  state_hash text,
  -- OAuth 1.0a: the provider sends this instead of the state.
  request_token_hash text,
  services jsonb not null default '[]',
  access_mode app.integration_access_mode not null,
  replace_account boolean not null,
  -- The person who began it, where there is a session.
  starter text,
  -- Of the cookie that the button set: the same browser comes back.
  browser_hash text,
  -- PKCE verifier, nonce, secret of the request token.
  key_id text,
  wrapped_key bytea,
  ciphertext bytea,
  expires_at timestamptz not null,
  consumed_at timestamptz,
  result app.integration_oauth_result,
  created_at timestamptz not null default now(),
  constraint integration_oauth_states_pkey primary key (organization_id, id),
  constraint integration_oauth_states_integration_id_fkey foreign key (organization_id, integration_id)
    references app.integrations (organization_id, id) on delete cascade,
  constraint integration_oauth_states_connection_revision_check check (connection_revision >= 0),
  constraint integration_oauth_states_ticket_hash_check check (ticket_hash ~ '^[0-9a-f]{64}$'),
  constraint integration_oauth_states_state_hash_check check (state_hash ~ '^[0-9a-f]{64}$'),
  constraint integration_oauth_states_request_token_hash_check check (request_token_hash ~ '^[0-9a-f]{64}$'),
  constraint integration_oauth_states_browser_hash_check check (browser_hash ~ '^[0-9a-f]{64}$'),
  constraint integration_oauth_states_begun_check
    check ((ticket_hash is null) = (browser_hash is not null) and (ticket_hash is null) = (state_hash is not null)),
  constraint integration_oauth_states_services_check check (jsonb_typeof(services) = 'array'),
  constraint integration_oauth_states_sealed_check
    check ((key_id is null) = (ciphertext is null) and (key_id is null) = (wrapped_key is null)),
  constraint integration_oauth_states_sealed_until_consumed_check check (consumed_at is null or key_id is null),
  constraint integration_oauth_states_result_when_consumed_check check (result is null or consumed_at is not null)
);
create index integration_oauth_states_integration_id_idx
  on app.integration_oauth_states (organization_id, integration_id);
create index integration_oauth_states_expires_at_idx on app.integration_oauth_states (expires_at);
-- A callback names no organization. Hashes of random numbers: none is unique, so that no tenant learns of another.
create index integration_oauth_states_ticket_hash_idx on app.integration_oauth_states (ticket_hash)
  where ticket_hash is not null;
create index integration_oauth_states_state_hash_idx on app.integration_oauth_states (state_hash)
  where state_hash is not null;
create index integration_oauth_states_request_token_hash_idx on app.integration_oauth_states (request_token_hash)
  where request_token_hash is not null;

alter table app.integration_oauth_states enable row level security;
alter table app.integration_oauth_states force row level security;
create policy owner_all on app.integration_oauth_states to runner_owner using (true) with check (true);
create policy scoped_all on app.integration_oauth_states to runner_scoped
  using (organization_id = (select app.current_organization()))
  with check (organization_id = (select app.current_organization()));
create policy global_all on app.integration_oauth_states to runner_global using (true) with check (true);
grant select, insert, update, delete on app.integration_oauth_states to runner_scoped;
grant select (organization_id, id, ticket_hash, state_hash, request_token_hash, key_id, expires_at), delete
  on app.integration_oauth_states to runner_global;
-- Not sampled: no plan is made by it, and EXPLAIN tells estimates of all tenants.
alter table app.integration_oauth_states
  alter services set statistics 0,
  alter wrapped_key set statistics 0,
  alter ciphertext set statistics 0,
  alter starter set statistics 0;

comment on table app.integration_oauth_states is
  'Authorizations that somebody has begun: ten minutes, consumed once.';
comment on column app.integration_oauth_states.organization_id is 'The organization it belongs to.';
comment on column app.integration_oauth_states.id is 'Id of the flow.';
comment on column app.integration_oauth_states.integration_id is 'What is to be connected.';
comment on column app.integration_oauth_states.connection_revision is 'The connection revision when it was begun.';
comment on column app.integration_oauth_states.connected_at is
  'When the connection of then had been authorized last; null: there was none.';
comment on column app.integration_oauth_states.ticket_hash is
  'Digest of the ticket of the page that begins it; null once used.';
comment on column app.integration_oauth_states.state_hash is 'Digest of the state; null until its button was used.';
comment on column app.integration_oauth_states.request_token_hash is 'Digest of the request token of OAuth 1.0a.';
comment on column app.integration_oauth_states.services is 'What was selected.';
comment on column app.integration_oauth_states.access_mode is 'What is asked for.';
comment on column app.integration_oauth_states.replace_account is
  'Another account may take the place of the connected one.';
comment on column app.integration_oauth_states.starter is 'Who began it; null: no session.';
comment on column app.integration_oauth_states.browser_hash is
  'Digest of the cookie of the browser that went to the provider.';
comment on column app.integration_oauth_states.key_id is 'The key that the data key of its secrets is wrapped by.';
comment on column app.integration_oauth_states.wrapped_key is 'The data key, wrapped; never shown.';
comment on column app.integration_oauth_states.ciphertext is 'Its secrets; never shown, and gone when it is consumed.';
comment on column app.integration_oauth_states.expires_at is 'Until when it may end.';
comment on column app.integration_oauth_states.consumed_at is 'When the provider sent the browser back.';
comment on column app.integration_oauth_states.result is 'How it ended.';
comment on column app.integration_oauth_states.created_at is 'When it was begun.';

create table app.integration_gateway_capabilities (
  organization_id uuid not null,
  token_hash text not null,
  integration_id uuid not null,
  agent_profile_id uuid not null,
  run_id uuid not null,
  kind app.integration_gateway_kind not null,
  connection_revision integer not null,
  authorization_epoch integer not null,
  expires_at timestamptz not null,
  created_at timestamptz not null default now(),
  constraint integration_gateway_capabilities_pkey primary key (organization_id, token_hash),
  constraint integration_gateway_capabilities_integration_id_fkey foreign key (organization_id, integration_id)
    references app.integrations (organization_id, id) on delete cascade,
  constraint integration_gateway_capabilities_agent_profile_id_fkey foreign key (organization_id, agent_profile_id)
    references app.agent_profiles (organization_id, id) on delete cascade,
  constraint integration_gateway_capabilities_run_id_fkey foreign key (organization_id, run_id)
    references app.runs (organization_id, id) on delete cascade,
  constraint integration_gateway_capabilities_token_hash_check check (token_hash ~ '^[0-9a-f]{64}$')
);
create index integration_gateway_capabilities_integration_id_idx
  on app.integration_gateway_capabilities (organization_id, integration_id);
create index integration_gateway_capabilities_agent_profile_id_idx
  on app.integration_gateway_capabilities (organization_id, agent_profile_id);
create index integration_gateway_capabilities_run_id_idx
  on app.integration_gateway_capabilities (organization_id, run_id);
create index integration_gateway_capabilities_expires_at_idx on app.integration_gateway_capabilities (expires_at);
-- A call of the gateway names no organization.
create index integration_gateway_capabilities_token_hash_idx on app.integration_gateway_capabilities (token_hash);

alter table app.integration_gateway_capabilities enable row level security;
alter table app.integration_gateway_capabilities force row level security;
create policy owner_all on app.integration_gateway_capabilities to runner_owner using (true) with check (true);
create policy scoped_all on app.integration_gateway_capabilities to runner_scoped
  using (organization_id = (select app.current_organization()))
  with check (organization_id = (select app.current_organization()));
create policy global_all on app.integration_gateway_capabilities to runner_global using (true) with check (true);
grant select, insert, update, delete on app.integration_gateway_capabilities to runner_scoped;
grant select (organization_id, token_hash, expires_at), delete
  on app.integration_gateway_capabilities to runner_global;

comment on table app.integration_gateway_capabilities is
  'What an execution calls the gateway with. Each call checks it again, and the execution that it is for.';
comment on column app.integration_gateway_capabilities.organization_id is 'The organization it belongs to.';
comment on column app.integration_gateway_capabilities.token_hash is 'SHA-256 of the capability, in hex.';
comment on column app.integration_gateway_capabilities.integration_id is 'The integration that it is for.';
comment on column app.integration_gateway_capabilities.agent_profile_id is 'The profile that it is for.';
comment on column app.integration_gateway_capabilities.run_id is 'The execution that it is for.';
comment on column app.integration_gateway_capabilities.kind is 'Which of the gateways.';
comment on column app.integration_gateway_capabilities.connection_revision is 'The connection that it is for.';
comment on column app.integration_gateway_capabilities.authorization_epoch is
  'What agents could do when it was made; void once that has changed.';
comment on column app.integration_gateway_capabilities.expires_at is 'When it ends at the latest.';
comment on column app.integration_gateway_capabilities.created_at is 'When it was made.';

create table app.integration_context_repairs (
  organization_id uuid not null,
  id uuid not null default app.uuid_v7(),
  integration_id uuid not null,
  mapping jsonb not null,
  status app.integration_repair_status not null default 'queued',
  -- The health report that it went into.
  report_revision integer,
  created_at timestamptz not null default now(),
  finished_at timestamptz,
  constraint integration_context_repairs_pkey primary key (organization_id, id),
  constraint integration_context_repairs_integration_id_fkey foreign key (organization_id, integration_id)
    references app.integrations (organization_id, id) on delete cascade,
  constraint integration_context_repairs_mapping_check check (jsonb_typeof(mapping) = 'object'),
  constraint integration_context_repairs_finished_at_when_over_check
    check ((status = 'queued') = (finished_at is null)),
  constraint integration_context_repairs_report_when_applied_check
    check ((status = 'applied') = (report_revision is not null))
);
create index integration_context_repairs_integration_id_idx
  on app.integration_context_repairs (organization_id, integration_id, created_at, id);
create index integration_context_repairs_queued_idx
  on app.integration_context_repairs (organization_id, created_at, id) where status = 'queued';
create index integration_context_repairs_all_queued_idx on app.integration_context_repairs (created_at)
  where status = 'queued';

alter table app.integration_context_repairs enable row level security;
alter table app.integration_context_repairs force row level security;
create policy owner_all on app.integration_context_repairs to runner_owner using (true) with check (true);
create policy scoped_all on app.integration_context_repairs to runner_scoped
  using (organization_id = (select app.current_organization()))
  with check (organization_id = (select app.current_organization()));
create policy tenant_read on app.integration_context_repairs for select to runner_api, runner_jobs
  using (organization_id = (select app.current_organization()));
create policy global_read on app.integration_context_repairs for select to runner_global using (true);
create policy admin_read on app.integration_context_repairs for select to runner_admin
  using (((select app.current_organization()) is null or organization_id = (select app.current_organization()))
    and organization_id <> all ((select app.organizations_deleted())::uuid[]));
grant select, insert, update, delete on app.integration_context_repairs to runner_scoped;
grant select on app.integration_context_repairs to runner_api, runner_jobs;
grant select (organization_id, id, status, created_at)
  on app.integration_context_repairs to runner_global;
grant select (organization_id, id, integration_id, mapping, status, report_revision, created_at, finished_at)
  on app.integration_context_repairs to runner_admin;
-- Not sampled: no plan is made by it, and EXPLAIN tells estimates of all tenants.
alter table app.integration_context_repairs alter mapping set statistics 0;

comment on table app.integration_context_repairs is
  'What the next health report is to say of an integration.';
comment on column app.integration_context_repairs.organization_id is 'The organization it belongs to.';
comment on column app.integration_context_repairs.id is 'Id of the repair.';
comment on column app.integration_context_repairs.integration_id is 'The integration.';
comment on column app.integration_context_repairs.mapping is 'What it means to the organization.';
comment on column app.integration_context_repairs.status is 'queued: the next reconciliation takes it.';
comment on column app.integration_context_repairs.report_revision is 'The health report that says it.';
comment on column app.integration_context_repairs.created_at is 'When it was asked for.';
comment on column app.integration_context_repairs.finished_at is 'When it was applied.';

reset role;

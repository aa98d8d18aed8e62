-- Actions: effects outside that agents propose, people decide about, and a job executes under a lease.
set local role runner_owner;

create domain app.action_kind as text constraint action_kind_check
  check (value in ('provider_write', 'git_push'));
create domain app.action_status as text constraint action_status_check
  check (value in ('awaiting_approval', 'approved', 'rejected', 'expired', 'cancelled', 'executing', 'succeeded', 'failed',
    'unknown', 'not_executed'));
create domain app.action_decision as text constraint action_decision_check
  check (value in ('approved', 'rejected'));
create domain app.action_reconciliation as text constraint action_reconciliation_check
  check (value in ('succeeded', 'failed', 'not_executed'));

create table app.actions (
  organization_id uuid not null,
  id uuid not null default app.uuid_v7(),
  -- No foreign key to the integration, the chat and its run: the record of an effect outlives them.
  integration_id uuid not null,
  integration_key text not null,
  provider text not null,
  agent_profile_id uuid not null,
  task_id uuid,
  run_id uuid not null,
  chat_id uuid,
  message_id uuid,
  invocation_id text not null,
  retry_of uuid,
  kind app.action_kind not null,
  tool text not null,
  -- What it was proposed for: another tool, connection or account executes nothing.
  tool_digest text,
  connection_revision integer not null,
  subject_hash text,
  summary text not null,
  risk app.integration_risk not null,
  arguments jsonb not null,
  -- The schema of the tool as it was, where it marks values as secret: the tool may be another one later, or gone.
  arguments_schema jsonb,
  arguments_sha256 text not null,
  -- Of task or chat, integration, tool, arguments and files: equal proposals have the same.
  proposal_sha256 text not null,
  timeout_ms integer not null,
  status app.action_status not null,
  version integer not null default 1,
  requires_approval boolean not null,
  decision app.action_decision,
  decided_by text,
  decision_note text,
  decided_at timestamptz,
  execution_attempts integer not null default 0,
  execution_started_at timestamptz,
  execution_finished_at timestamptz,
  result jsonb,
  error jsonb,
  -- Whoever executes it, or looks up what became of it. A lease past its end is anybody's.
  lease_id uuid,
  lease_expires_at timestamptz,
  -- When a job takes it up: to execute it, or to look up what became of it. Taken up, it is due again when the lease ends.
  due_at timestamptz,
  look_up_count integer not null default 0,
  look_up_until timestamptz,
  reconciliation app.action_reconciliation,
  reconciliation_note text,
  reconciled_by text,
  reconciled_at timestamptz,
  reason jsonb,
  expires_at timestamptz not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint actions_pkey primary key (organization_id, id),
  constraint actions_agent_profile_id_fkey foreign key (organization_id, agent_profile_id)
    references app.agent_profiles (organization_id, id) on delete no action,
  constraint actions_task_id_fkey foreign key (organization_id, task_id)
    references app.tasks (organization_id, id) on delete cascade,
  constraint actions_task_or_chat_check
    check ((task_id is null) = (chat_id is not null) and (chat_id is null) = (message_id is null)),
  constraint actions_invocation_id_check check (length(invocation_id) between 1 and 200),
  constraint actions_tool_check check (length(tool) between 1 and 128),
  constraint actions_tool_digest_check
    check (tool_digest ~ '^[0-9a-f]{64}$' and (kind = 'git_push') = (tool_digest is null)),
  constraint actions_summary_check check (length(summary) between 1 and 2000),
  constraint actions_arguments_check check (jsonb_typeof(arguments) = 'object'),
  constraint actions_arguments_schema_check check (jsonb_typeof(arguments_schema) = 'object'),
  constraint actions_arguments_sha256_check check (arguments_sha256 ~ '^[0-9a-f]{64}$'),
  constraint actions_timeout_ms_check
    check (timeout_ms between 1 and case kind when 'git_push' then 600000 else 60000 end),
  constraint actions_version_check check (version >= 1),
  constraint actions_decision_check check ((decision is null) = (decided_at is null)
    and (decision is null) = (decided_by is null) and (decision is not null or decision_note is null)),
  constraint actions_rejected_when_decided_check check ((status = 'rejected') = (decision is not distinct from 'rejected')),
  constraint actions_approval_decided_check
    check (not requires_approval or status not in ('approved', 'executing', 'succeeded', 'failed', 'unknown', 'not_executed')
      or decision is not distinct from 'approved'),
  constraint actions_awaiting_check check (status <> 'awaiting_approval' or requires_approval and decision is null),
  constraint actions_started_when_executed_check
    check ((execution_started_at is not null)
      = (status in ('executing', 'succeeded', 'failed', 'unknown', 'not_executed'))),
  constraint actions_finished_when_executed_check
    check ((execution_finished_at is not null) = (status in ('succeeded', 'failed', 'unknown', 'not_executed'))),
  constraint actions_error_when_failed_check check (error is null or status = 'failed'),
  constraint actions_result_when_succeeded_check check (result is null or status = 'succeeded'),
  constraint actions_due_when_under_way_check check ((due_at is not null) = (status in ('approved', 'executing'))),
  constraint actions_lease_check
    check (lease_expires_at is null or lease_id is not null and status in ('approved', 'executing')),
  constraint actions_look_up_check check (look_up_until is null or look_up_count > 0),
  constraint actions_reconciliation_check check ((reconciliation is null) = (reconciled_at is null)
    and (reconciliation is null) = (reconciled_by is null) and (reconciliation is null) = (reconciliation_note is null)),
  constraint actions_reconciled_status_check
    check (reconciliation is null or status = reconciliation),
  constraint actions_not_executed_when_reconciled_check check (status <> 'not_executed' or reconciliation is not null),
  constraint actions_reason_check check (jsonb_typeof(reason) = 'object')
);
create index actions_created_at_idx on app.actions (organization_id, created_at, id);
create index actions_status_idx on app.actions (organization_id, status, created_at, id);
create index actions_integration_id_idx on app.actions (organization_id, integration_id, created_at, id);
create index actions_task_id_idx on app.actions (organization_id, task_id, created_at, id) where task_id is not null;
create index actions_chat_id_idx on app.actions (organization_id, chat_id, created_at, id) where chat_id is not null;
create index actions_run_id_idx on app.actions (organization_id, run_id, created_at, id);
create index actions_agent_profile_id_idx on app.actions (organization_id, agent_profile_id, created_at, id);
create index actions_kind_idx on app.actions (organization_id, kind, created_at, id);
create index actions_risk_idx on app.actions (organization_id, risk, created_at, id);
create index actions_decision_idx on app.actions (organization_id, decision, created_at, id);
create index actions_all_created_at_idx on app.actions (created_at, id);
-- Equal proposals.
create index actions_proposal_sha256_idx on app.actions (organization_id, proposal_sha256);
-- What ends with its integration, or with its reply: that of tasks is found by task.
create index actions_open_integration_idx on app.actions (organization_id, integration_id)
  where status in ('awaiting_approval', 'approved');
create index actions_open_task_idx on app.actions (organization_id, task_id)
  where status in ('awaiting_approval', 'approved') and task_id is not null;
create index actions_open_message_idx on app.actions (organization_id, message_id)
  where status in ('awaiting_approval', 'approved') and message_id is not null;
-- What is due, read by the jobs: by the first index all of it, by the second organization by organization (app.due_in_turns).
create index actions_due_at_idx on app.actions (due_at) where due_at is not null;
create index actions_due_at_turns_idx on app.actions (organization_id, due_at) where due_at is not null;
create index actions_expires_at_idx on app.actions (expires_at) where status = 'awaiting_approval';
create index actions_expires_at_turns_idx on app.actions (organization_id, expires_at) where status = 'awaiting_approval';

alter table app.actions enable row level security;
alter table app.actions force row level security;
create policy owner_all on app.actions to runner_owner using (true) with check (true);
create policy scoped_all on app.actions to runner_scoped
  using (organization_id = (select app.current_organization()))
  with check (organization_id = (select app.current_organization()));
create policy tenant_read on app.actions for select to runner_api
  using (organization_id = (select app.current_organization()));
create policy global_read on app.actions for select to runner_global using (true);
create policy admin_read on app.actions for select to runner_admin
  using (((select app.current_organization()) is null or organization_id = (select app.current_organization()))
    and organization_id <> all ((select app.organizations_deleted())::uuid[]));
create policy report_read on app.actions for select to runner_report
  using (app.report_shows(organization_id,
      (select pg_has_role(session_user, 'runner_report', 'member')
        or exists (select from app.analysts a where a.login = session_user::text
          and a.login_oid = to_regrole(quote_ident(session_user))::oid::bigint and a.all_organizations)),
      array(select g.organization_id from app.analyst_grants g where g.login = session_user::text
        and g.login_oid = to_regrole(quote_ident(session_user))::oid::bigint))
    and organization_id = any (array(select o.id from app.organizations o)));
grant select, insert, update, delete on app.actions to runner_scoped;
grant select on app.actions to runner_api;
grant select (organization_id, id, status, due_at, expires_at) on app.actions to runner_global;
grant select (organization_id, id, integration_id, integration_key, provider, agent_profile_id, task_id, run_id, chat_id,
  message_id, invocation_id, retry_of, kind, tool, summary, risk, arguments_sha256, timeout_ms, status, version,
  requires_approval, decision, decided_by, decision_note, decided_at, execution_attempts, execution_started_at,
  execution_finished_at, error, lease_expires_at, due_at, look_up_count, look_up_until, reconciliation,
  reconciliation_note, reconciled_by, reconciled_at, reason, expires_at, created_at, updated_at)
  on app.actions to runner_admin;
grant select (organization_id, id, integration_id, integration_key, provider, agent_profile_id, task_id, run_id, chat_id,
  retry_of, kind, tool, risk, status, requires_approval, decision, decided_at, execution_attempts, execution_started_at,
  execution_finished_at, error, reconciliation, reconciled_at, reason, created_at, updated_at)
  on app.actions to runner_report;
-- Not sampled: no plan is made by it, and EXPLAIN tells estimates of all tenants.
alter table app.actions
  alter integration_key set statistics 0,
  alter provider set statistics 0,
  alter invocation_id set statistics 0,
  alter tool set statistics 0,
  alter summary set statistics 0,
  alter arguments set statistics 0,
  alter arguments_schema set statistics 0,
  alter decided_by set statistics 0,
  alter decision_note set statistics 0,
  alter result set statistics 0,
  alter error set statistics 0,
  alter reconciliation_note set statistics 0,
  alter reconciled_by set statistics 0,
  alter reason set statistics 0;

comment on table app.actions is 'Effects outside that agents proposed, and what became of them.';
comment on column app.actions.organization_id is 'The organization it belongs to.';
comment on column app.actions.id is 'Id of the action; at providers that take one, the key that keeps it from being done twice.';
comment on column app.actions.integration_id is 'The integration; it may be gone.';
comment on column app.actions.integration_key is 'Key of the integration when it was proposed.';
comment on column app.actions.provider is 'Provider of the integration.';
comment on column app.actions.agent_profile_id is 'Whose agent proposed it.';
comment on column app.actions.task_id is 'The task whose run proposed it.';
comment on column app.actions.run_id is 'The run that proposed it.';
comment on column app.actions.chat_id is 'The chat whose turn proposed it.';
comment on column app.actions.message_id is 'The reply of that turn.';
comment on column app.actions.invocation_id is 'The invocation of the gateway that proposed it, as its caller named it.';
comment on column app.actions.retry_of is 'The action that this is another attempt at, as its proposal says.';
comment on column app.actions.kind is 'provider_write: by a tool. git_push: branches of a repository.';
comment on column app.actions.tool is 'What does it.';
comment on column app.actions.tool_digest is 'Digest of the tool when it was proposed; of a push there is none.';
comment on column app.actions.connection_revision is 'The connection that it was proposed for.';
comment on column app.actions.subject_hash is 'Digest of the account that it was proposed for; null: there is none.';
comment on column app.actions.summary is 'What it does, made from the arguments: a person decides by it.';
comment on column app.actions.risk is 'What an approval is asked for by.';
comment on column app.actions.arguments is 'What the tool is called with.';
comment on column app.actions.arguments_schema is
  'Schema of the arguments when it was proposed, where it marks values as secret, which are never shown; null: it marks none.';
comment on column app.actions.arguments_sha256 is 'SHA-256 of the arguments, in hex: what a person has seen.';
comment on column app.actions.proposal_sha256 is 'SHA-256, in hex, of what makes two proposals equal.';
comment on column app.actions.timeout_ms is 'How long its call of the provider may take.';
comment on column app.actions.status is
  'awaiting_approval, approved, executing and unknown are open; unknown: what became of it has to be found out by a person. The others are final.';
comment on column app.actions.version is 'Rises with every change of the status.';
comment on column app.actions.requires_approval is 'An owner has to approve it.';
comment on column app.actions.decision is 'What an owner decided; null: nothing.';
comment on column app.actions.decided_by is 'Who decided.';
comment on column app.actions.decision_note is 'Why.';
comment on column app.actions.decided_at is 'When.';
comment on column app.actions.execution_attempts is 'How often a job has taken it up to execute it; it is sent once at most.';
comment on column app.actions.execution_started_at is 'When the intent to execute it was committed.';
comment on column app.actions.execution_finished_at is 'When its outcome was known, or known to be unknown.';
comment on column app.actions.result is 'What the provider said of one that succeeded.';
comment on column app.actions.error is '{code, message} of one that failed.';
comment on column app.actions.lease_id is 'Whoever executes it or looks it up, or did so last.';
comment on column app.actions.lease_expires_at is 'When another one may.';
comment on column app.actions.due_at is 'When a job takes it up next.';
comment on column app.actions.look_up_count is 'How often it was looked up at the provider.';
comment on column app.actions.look_up_until is 'When looking it up ends without a result.';
comment on column app.actions.reconciliation is 'What a person found out of one whose outcome was unknown.';
comment on column app.actions.reconciliation_note is 'What the person says of it.';
comment on column app.actions.reconciled_by is 'Who reconciled it.';
comment on column app.actions.reconciled_at is 'When.';
comment on column app.actions.reason is '{code, message}: why it was cancelled, expired or sent back to be approved.';
comment on column app.actions.expires_at is 'When it expires if nobody decides.';
comment on column app.actions.created_at is 'When it was proposed.';
comment on column app.actions.updated_at is 'When it was last changed.';

create table app.action_files (
  organization_id uuid not null,
  action_id uuid not null,
  argument text not null,
  name text not null,
  content_type text not null,
  size_bytes bigint not null,
  sha256 text not null,
  -- Nothing but us can write there, and whoever reads compares with the digest.
  storage_key text not null,
  constraint action_files_pkey primary key (organization_id, action_id, argument),
  constraint action_files_action_id_fkey foreign key (organization_id, action_id)
    references app.actions (organization_id, id) on delete cascade,
  constraint action_files_argument_check check (length(argument) between 1 and 200),
  constraint action_files_name_check check (length(name) between 1 and 255),
  constraint action_files_content_type_check check (length(content_type) between 1 and 255),
  constraint action_files_size_bytes_check check (size_bytes >= 0),
  constraint action_files_sha256_check check (sha256 ~ '^[0-9a-f]{64}$')
);
-- Whether an action holds the bytes, for whoever removes them.
create index action_files_storage_key_idx on app.action_files (organization_id, storage_key);

alter table app.action_files enable row level security;
alter table app.action_files force row level security;
create policy owner_all on app.action_files to runner_owner using (true) with check (true);
create policy scoped_all on app.action_files to runner_scoped
  using (organization_id = (select app.current_organization()))
  with check (organization_id = (select app.current_organization()));
create policy tenant_read on app.action_files for select to runner_api
  using (organization_id = (select app.current_organization()));
create policy admin_read on app.action_files for select to runner_admin
  using (((select app.current_organization()) is null or organization_id = (select app.current_organization()))
    and organization_id <> all ((select app.organizations_deleted())::uuid[]));
grant select, insert, update, delete on app.action_files to runner_scoped;
grant select on app.action_files to runner_api;
grant select (organization_id, action_id, argument, name, content_type, size_bytes, sha256)
  on app.action_files to runner_admin;
-- Not sampled: EXPLAIN tells estimates of all tenants.
alter table app.action_files alter name set statistics 0, alter storage_key set statistics 0;

comment on table app.action_files is 'Files that actions send, by their digests.';
comment on column app.action_files.organization_id is 'The organization it belongs to.';
comment on column app.action_files.action_id is 'The action.';
comment on column app.action_files.argument is 'The argument that it is for.';
comment on column app.action_files.name is 'Its name.';
comment on column app.action_files.content_type is 'Its media type.';
comment on column app.action_files.size_bytes is 'In bytes.';
comment on column app.action_files.sha256 is 'SHA-256 of the bytes, in hex.';
comment on column app.action_files.storage_key is 'Where the bytes lie in the object storage; never shown.';

create table app.action_invocations (
  organization_id uuid not null,
  run_id uuid not null,
  integration_id uuid not null,
  invocation_id text not null,
  body_sha256 text not null,
  -- The action that it proposed; null: it reads.
  action_id uuid,
  -- Of a read: whoever calls the provider for it, or did so last. A lease past its end is anybody's.
  lease_id uuid,
  lease_expires_at timestamptz,
  -- What it responded with: here, or in the object storage where it is long. A failure is that of the last lease alone.
  response text,
  response_key text,
  failure jsonb,
  -- When a job looks whether it can go, with what it responded with: a day after its execution.
  remove_at timestamptz not null default now() + interval '1 day',
  created_at timestamptz not null default now(),
  constraint action_invocations_pkey primary key (organization_id, run_id, integration_id, invocation_id),
  constraint action_invocations_run_id_fkey foreign key (organization_id, run_id)
    references app.runs (organization_id, id) on delete cascade,
  constraint action_invocations_integration_id_fkey foreign key (organization_id, integration_id)
    references app.integrations (organization_id, id) on delete cascade,
  constraint action_invocations_action_id_fkey foreign key (organization_id, action_id)
    references app.actions (organization_id, id) on delete cascade,
  constraint action_invocations_invocation_id_check check (length(invocation_id) between 1 and 200),
  constraint action_invocations_body_sha256_check check (body_sha256 ~ '^[0-9a-f]{64}$'),
  constraint action_invocations_read_check check (action_id is null or lease_id is null),
  constraint action_invocations_lease_check
    check (lease_expires_at is null or lease_id is not null and num_nonnulls(response, response_key, failure) = 0),
  constraint action_invocations_outcome_check
    check (num_nonnulls(response, response_key, failure) <= (lease_id is not null)::integer),
  constraint action_invocations_failure_check check (jsonb_typeof(failure) = 'object')
);
create index action_invocations_integration_id_idx on app.action_invocations (organization_id, integration_id);
create index action_invocations_action_id_idx on app.action_invocations (organization_id, action_id)
  where action_id is not null;
-- What a job looks at, read as due_in_turns does.
create index action_invocations_remove_at_idx on app.action_invocations (remove_at);
create index action_invocations_remove_at_turns_idx on app.action_invocations (organization_id, remove_at);
-- What names an object.
create index action_invocations_response_key_idx on app.action_invocations (organization_id, response_key)
  where response_key is not null;

alter table app.action_invocations enable row level security;
alter table app.action_invocations force row level security;
create policy owner_all on app.action_invocations to runner_owner using (true) with check (true);
create policy scoped_all on app.action_invocations to runner_scoped
  using (organization_id = (select app.current_organization()))
  with check (organization_id = (select app.current_organization()));
create policy global_read on app.action_invocations for select to runner_global using (true);
grant select, insert, update, delete on app.action_invocations to runner_scoped;
grant select (organization_id, run_id, remove_at) on app.action_invocations to runner_global;
-- Not sampled: EXPLAIN tells estimates of all tenants.
alter table app.action_invocations
  alter response set statistics 0,
  alter response_key set statistics 0,
  alter failure set statistics 0;

comment on table app.action_invocations is
  'Calls of the gateway, as their callers name them: one name is for one body, within an execution and an integration.';
comment on column app.action_invocations.organization_id is 'The organization it belongs to.';
comment on column app.action_invocations.run_id is 'The execution.';
comment on column app.action_invocations.integration_id is 'The integration that is called.';
comment on column app.action_invocations.invocation_id is 'The name, chosen by the caller.';
comment on column app.action_invocations.body_sha256 is 'SHA-256, in hex, of the body that it is for.';
comment on column app.action_invocations.action_id is 'The action that it proposed; null: it reads.';
comment on column app.action_invocations.lease_id is 'Of a read: whoever calls the provider for it, or did so last.';
comment on column app.action_invocations.lease_expires_at is 'When another one may.';
comment on column app.action_invocations.response is 'What a read responded with, as JSON, where it is short.';
comment on column app.action_invocations.response_key is 'Where a longer response lies in the object storage; never shown.';
comment on column app.action_invocations.failure is 'What the last try of a read failed with, for those who waited for it.';
comment on column app.action_invocations.remove_at is 'When a job looks whether it is no longer needed.';
comment on column app.action_invocations.created_at is 'When it was first called.';

reset role;

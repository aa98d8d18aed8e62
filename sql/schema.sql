-- Generated from the catalog by `npm run generate`: to be read, not to be run, and never edited.
-- What migrations, triggers and functions make in the schema app of a new database: each table on a page, with what every
-- column means beside it; then the domains; then every function with its owner and who else executes it. Functions whose
-- search path is not mentioned have pg_catalog, pg_temp.

-- action_files ────────────────────────────────────────────────────────────────────────────────────────────────────────
-- Files that actions send, by their digests.
CREATE TABLE app.action_files (
  organization_id uuid NOT NULL,                                  -- The organization it belongs to.
  action_id uuid NOT NULL,                                        -- The action.
  argument text NOT NULL,                                         -- The argument that it is for.
  name text NOT NULL,                                             -- Its name.
  content_type text NOT NULL,                                     -- Its media type.
  size_bytes bigint NOT NULL,                                     -- In bytes.
  sha256 text NOT NULL,                                           -- SHA-256 of the bytes, in hex.
  storage_key text NOT NULL,                                      -- Where the bytes lie in the object storage; never shown.
  CONSTRAINT action_files_pkey PRIMARY KEY (organization_id, action_id, argument),
  CONSTRAINT action_files_action_id_fkey FOREIGN KEY (organization_id, action_id) REFERENCES app.actions(organization_id,
    id) ON DELETE CASCADE,
  CONSTRAINT action_files_argument_check CHECK (((length(argument) >= 1) AND (length(argument) <= 200))),
  CONSTRAINT action_files_content_type_check CHECK (((length(content_type) >= 1) AND (length(content_type) <= 255))),
  CONSTRAINT action_files_name_check CHECK (((length(name) >= 1) AND (length(name) <= 255))),
  CONSTRAINT action_files_sha256_check CHECK ((sha256 ~ '^[0-9a-f]{64}$')),
  CONSTRAINT action_files_size_bytes_check CHECK ((size_bytes >= 0))
);
-- Not sampled (SET STATISTICS 0): name, storage_key
CREATE INDEX action_files_storage_key_idx ON app.action_files USING btree (organization_id, storage_key);
ALTER TABLE app.action_files ENABLE ROW LEVEL SECURITY;
ALTER TABLE app.action_files FORCE ROW LEVEL SECURITY;
CREATE POLICY admin_read ON app.action_files FOR SELECT TO runner_admin USING (((((SELECT app.current_organization()) IS
  NULL) OR (organization_id = (SELECT app.current_organization()))) AND (organization_id <> ALL ((SELECT
  app.organizations_deleted())::uuid[]))));
CREATE POLICY owner_all ON app.action_files TO runner_owner USING (true) WITH CHECK (true);
CREATE POLICY scoped_all ON app.action_files TO runner_scoped USING ((organization_id = (SELECT
  app.current_organization()))) WITH CHECK ((organization_id = (SELECT app.current_organization())));
CREATE POLICY tenant_read ON app.action_files FOR SELECT TO runner_api USING ((organization_id = (SELECT
  app.current_organization())));
GRANT SELECT (organization_id, action_id, argument, name, content_type, size_bytes, sha256) ON app.action_files TO
  runner_admin;
GRANT SELECT ON app.action_files TO runner_api;
GRANT SELECT, INSERT, UPDATE, DELETE ON app.action_files TO runner_scoped;

-- action_invocation_files ─────────────────────────────────────────────────────────────────────────────────────────────
-- Files of calls of the gateway: begun, while an upload is awaited, or stored, when their bytes were compared with what
-- was declared.
CREATE TABLE app.action_invocation_files (
  organization_id uuid NOT NULL,                                  -- The organization it belongs to.
  run_id uuid NOT NULL,                                           -- The execution.
  integration_id uuid NOT NULL,                                   -- The integration that is called.
  invocation_id text NOT NULL,                                    -- The invocation, which alone may name it.
  id uuid NOT NULL,                                               -- Its id: of an upload chosen by the caller.
  name text NOT NULL,                                             -- Its name.
  content_type text NOT NULL,                                     -- Its media type.
  size_bytes bigint NOT NULL,                                     -- In bytes; until it is stored, as declared.
  sha256 text NOT NULL,                                           -- SHA-256 of the bytes, in hex; until it is stored, as declared.
  upload_key text,                                                -- Where an upload by URL goes in the object storage; never shown. Null: there was none.
  upload_expires_at timestamptz,                                  -- When the last URL for it ends.
  storage_key text,                                               -- Where the bytes lie in the object storage; never shown. Null: it is not stored yet.
  stored_at timestamptz,                                          -- When its bytes had been compared and were stored.
  remove_at timestamptz NOT NULL DEFAULT (now() + '1 day'::interval),  -- When a job looks whether it is no longer needed.
  created_at timestamptz NOT NULL DEFAULT now(),                  -- When it was begun or stored.
  CONSTRAINT action_invocation_files_pkey PRIMARY KEY (organization_id, run_id, integration_id, invocation_id, id),
  CONSTRAINT action_invocation_files_integration_id_fkey FOREIGN KEY (organization_id, integration_id) REFERENCES
    app.integrations(organization_id, id) ON DELETE CASCADE,
  CONSTRAINT action_invocation_files_run_id_fkey FOREIGN KEY (organization_id, run_id) REFERENCES
    app.runs(organization_id, id) ON DELETE CASCADE,
  CONSTRAINT action_invocation_files_begun_or_stored_check CHECK ((num_nonnulls(upload_key, storage_key) >= 1)),
  CONSTRAINT action_invocation_files_content_type_check CHECK (((length(content_type) >= 1) AND (length(content_type) <=
    255))),
  CONSTRAINT action_invocation_files_invocation_id_check CHECK (((length(invocation_id) >= 1) AND (length(invocation_id)
    <= 200))),
  CONSTRAINT action_invocation_files_name_check CHECK (((length(name) >= 1) AND (length(name) <= 255))),
  CONSTRAINT action_invocation_files_sha256_check CHECK ((sha256 ~ '^[0-9a-f]{64}$')),
  CONSTRAINT action_invocation_files_size_bytes_check CHECK (((size_bytes >= 0) AND (size_bytes <= 1073741824))),
  CONSTRAINT action_invocation_files_stored_check CHECK (((storage_key IS NULL) = (stored_at IS NULL))),
  CONSTRAINT action_invocation_files_upload_check CHECK (((upload_key IS NULL) = (upload_expires_at IS NULL)))
);
-- Not sampled (SET STATISTICS 0): name, upload_key, storage_key
CREATE INDEX action_invocation_files_integration_id_idx ON app.action_invocation_files USING btree (organization_id,
  integration_id);
CREATE INDEX action_invocation_files_remove_at_idx ON app.action_invocation_files USING btree (remove_at);
CREATE INDEX action_invocation_files_remove_at_turns_idx ON app.action_invocation_files USING btree (organization_id,
  remove_at);
CREATE INDEX action_invocation_files_storage_key_idx ON app.action_invocation_files USING btree (organization_id,
  storage_key) WHERE (storage_key IS NOT NULL);
CREATE INDEX action_invocation_files_upload_key_idx ON app.action_invocation_files USING btree (organization_id,
  upload_key) WHERE (upload_key IS NOT NULL);
ALTER TABLE app.action_invocation_files ENABLE ROW LEVEL SECURITY;
ALTER TABLE app.action_invocation_files FORCE ROW LEVEL SECURITY;
CREATE POLICY global_read ON app.action_invocation_files FOR SELECT TO runner_global USING (true);
CREATE POLICY owner_all ON app.action_invocation_files TO runner_owner USING (true) WITH CHECK (true);
CREATE POLICY scoped_all ON app.action_invocation_files TO runner_scoped USING ((organization_id = (SELECT
  app.current_organization()))) WITH CHECK ((organization_id = (SELECT app.current_organization())));
GRANT SELECT (organization_id, run_id, remove_at) ON app.action_invocation_files TO runner_global;
GRANT SELECT, INSERT, UPDATE, DELETE ON app.action_invocation_files TO runner_scoped;

-- action_invocations ──────────────────────────────────────────────────────────────────────────────────────────────────
-- Calls of the gateway, as their callers name them: one name is for one body, within an execution and an integration.
CREATE TABLE app.action_invocations (
  organization_id uuid NOT NULL,                                  -- The organization it belongs to.
  run_id uuid NOT NULL,                                           -- The execution.
  integration_id uuid NOT NULL,                                   -- The integration that is called.
  invocation_id text NOT NULL,                                    -- The name, chosen by the caller.
  body_sha256 text NOT NULL,                                      -- SHA-256, in hex, of the body that it is for.
  action_id uuid,                                                 -- The action that it proposed; null: it reads.
  lease_id uuid,                                                  -- Of a read: whoever calls the provider for it, or did so last.
  lease_expires_at timestamptz,                                   -- When another one may.
  response text,                                                  -- What a read responded with, as JSON, where it is short.
  response_key text,                                              -- Where a longer response lies in the object storage; never shown.
  failure jsonb,                                                  -- What the last try of a read failed with, for those who waited for it.
  remove_at timestamptz NOT NULL DEFAULT (now() + '1 day'::interval),  -- When a job looks whether it is no longer needed.
  created_at timestamptz NOT NULL DEFAULT now(),                  -- When it was first called.
  CONSTRAINT action_invocations_pkey PRIMARY KEY (organization_id, run_id, integration_id, invocation_id),
  CONSTRAINT action_invocations_action_id_fkey FOREIGN KEY (organization_id, action_id) REFERENCES
    app.actions(organization_id, id) ON DELETE CASCADE,
  CONSTRAINT action_invocations_integration_id_fkey FOREIGN KEY (organization_id, integration_id) REFERENCES
    app.integrations(organization_id, id) ON DELETE CASCADE,
  CONSTRAINT action_invocations_run_id_fkey FOREIGN KEY (organization_id, run_id) REFERENCES app.runs(organization_id, id)
    ON DELETE CASCADE,
  CONSTRAINT action_invocations_body_sha256_check CHECK ((body_sha256 ~ '^[0-9a-f]{64}$')),
  CONSTRAINT action_invocations_failure_check CHECK ((jsonb_typeof(failure) = 'object')),
  CONSTRAINT action_invocations_invocation_id_check CHECK (((length(invocation_id) >= 1) AND (length(invocation_id) <=
    200))),
  CONSTRAINT action_invocations_lease_check CHECK (((lease_expires_at IS NULL) OR ((lease_id IS NOT NULL) AND
    (num_nonnulls(response, response_key, failure) = 0)))),
  CONSTRAINT action_invocations_outcome_check CHECK ((num_nonnulls(response, response_key, failure) <= ((lease_id IS NOT
    NULL))::integer)),
  CONSTRAINT action_invocations_read_check CHECK (((action_id IS NULL) OR (lease_id IS NULL)))
);
-- Not sampled (SET STATISTICS 0): response, response_key, failure
CREATE INDEX action_invocations_action_id_idx ON app.action_invocations USING btree (organization_id, action_id) WHERE
  (action_id IS NOT NULL);
CREATE INDEX action_invocations_integration_id_idx ON app.action_invocations USING btree (organization_id,
  integration_id);
CREATE INDEX action_invocations_remove_at_idx ON app.action_invocations USING btree (remove_at);
CREATE INDEX action_invocations_remove_at_turns_idx ON app.action_invocations USING btree (organization_id, remove_at);
CREATE INDEX action_invocations_response_key_idx ON app.action_invocations USING btree (organization_id, response_key)
  WHERE (response_key IS NOT NULL);
ALTER TABLE app.action_invocations ENABLE ROW LEVEL SECURITY;
ALTER TABLE app.action_invocations FORCE ROW LEVEL SECURITY;
CREATE POLICY global_read ON app.action_invocations FOR SELECT TO runner_global USING (true);
CREATE POLICY owner_all ON app.action_invocations TO runner_owner USING (true) WITH CHECK (true);
CREATE POLICY scoped_all ON app.action_invocations TO runner_scoped USING ((organization_id = (SELECT
  app.current_organization()))) WITH CHECK ((organization_id = (SELECT app.current_organization())));
GRANT SELECT (organization_id, run_id, remove_at) ON app.action_invocations TO runner_global;
GRANT SELECT, INSERT, UPDATE, DELETE ON app.action_invocations TO runner_scoped;

-- actions ─────────────────────────────────────────────────────────────────────────────────────────────────────────────
-- Effects outside that agents proposed, and what became of them.
CREATE TABLE app.actions (
  organization_id uuid NOT NULL,                                  -- The organization it belongs to.
  id uuid NOT NULL DEFAULT app.uuid_v7(),                         -- Id of the action; at providers that take one, the key that keeps it from being done twice.
  integration_id uuid NOT NULL,                                   -- The integration; it may be gone.
  integration_key text NOT NULL,                                  -- Key of the integration when it was proposed.
  provider text NOT NULL,                                         -- Provider of the integration.
  agent_profile_id uuid NOT NULL,                                 -- Whose agent proposed it.
  task_id uuid,                                                   -- The task whose run proposed it.
  run_id uuid NOT NULL,                                           -- The run that proposed it.
  chat_id uuid,                                                   -- The chat whose turn proposed it.
  message_id uuid,                                                -- The reply of that turn.
  invocation_id text NOT NULL,                                    -- The invocation of the gateway that proposed it, as its caller named it.
  retry_of uuid,                                                  -- The action that this is another attempt at, as its proposal says.
  kind app.action_kind NOT NULL,                                  -- provider_write: by a tool. git_push: branches of a repository.
  tool text NOT NULL,                                             -- What does it.
  tool_digest text,                                               -- Digest of the tool when it was proposed; of a push there is none.
  connection_revision integer NOT NULL,                           -- The connection that it was proposed for.
  subject_hash text,                                              -- Digest of the account that it was proposed for; null: there is none.
  summary text NOT NULL,                                          -- What it does, made from the arguments: a person decides by it.
  risk app.integration_risk NOT NULL,                             -- What an approval is asked for by.
  arguments jsonb NOT NULL,                                       -- What the tool is called with.
  arguments_schema jsonb,                                         -- Schema of the arguments when it was proposed, where it marks values as secret, which are never shown; null: it marks none.
  arguments_sha256 text NOT NULL,                                 -- SHA-256 of the arguments, in hex: what a person has seen.
  proposal_sha256 text NOT NULL,                                  -- SHA-256, in hex, of what makes two proposals equal.
  timeout_ms integer NOT NULL,                                    -- How long its call of the provider may take.
  status app.action_status NOT NULL,                              -- awaiting_approval, approved, executing and unknown are open; unknown: what became of it has to be found out by a person. The others are final.
  version integer NOT NULL DEFAULT 1,                             -- Rises with every change of the status.
  requires_approval boolean NOT NULL,                             -- An owner has to approve it.
  decision app.action_decision,                                   -- What an owner decided; null: nothing.
  decided_by text,                                                -- Who decided.
  decision_note text,                                             -- Why.
  decided_at timestamptz,                                         -- When.
  execution_attempts integer NOT NULL DEFAULT 0,                  -- How often a job has taken it up to execute it; it is sent once at most.
  execution_started_at timestamptz,                               -- When the intent to execute it was committed.
  execution_finished_at timestamptz,                              -- When its outcome was known, or known to be unknown.
  result jsonb,                                                   -- What the provider said of one that succeeded.
  error jsonb,                                                    -- {code, message} of one that failed.
  lease_id uuid,                                                  -- Whoever executes it or looks it up, or did so last.
  lease_expires_at timestamptz,                                   -- When another one may.
  due_at timestamptz,                                             -- When a job takes it up next.
  look_up_count integer NOT NULL DEFAULT 0,                       -- How often it was looked up at the provider.
  look_up_until timestamptz,                                      -- When looking it up ends without a result.
  reconciliation app.action_reconciliation,                       -- What a person found out of one whose outcome was unknown.
  reconciliation_note text,                                       -- What the person says of it.
  reconciled_by text,                                             -- Who reconciled it.
  reconciled_at timestamptz,                                      -- When.
  reason jsonb,                                                   -- {code, message}: why it was cancelled, expired or sent back to be approved.
  expires_at timestamptz NOT NULL,                                -- When it expires if nobody decides.
  created_at timestamptz NOT NULL DEFAULT now(),                  -- When it was proposed.
  updated_at timestamptz NOT NULL DEFAULT now(),                  -- When it was last changed.
  CONSTRAINT actions_pkey PRIMARY KEY (organization_id, id),
  CONSTRAINT actions_agent_profile_id_fkey FOREIGN KEY (organization_id, agent_profile_id) REFERENCES
    app.agent_profiles(organization_id, id),
  CONSTRAINT actions_task_id_fkey FOREIGN KEY (organization_id, task_id) REFERENCES app.tasks(organization_id, id) ON
    DELETE CASCADE,
  CONSTRAINT actions_approval_decided_check CHECK (((NOT requires_approval) OR (status <> ALL (ARRAY['approved',
    'executing', 'succeeded', 'failed', 'unknown', 'not_executed'])) OR (NOT (decision IS DISTINCT FROM 'approved')))),
  CONSTRAINT actions_arguments_check CHECK ((jsonb_typeof(arguments) = 'object')),
  CONSTRAINT actions_arguments_schema_check CHECK ((jsonb_typeof(arguments_schema) = 'object')),
  CONSTRAINT actions_arguments_sha256_check CHECK ((arguments_sha256 ~ '^[0-9a-f]{64}$')),
  CONSTRAINT actions_awaiting_check CHECK (((status <> 'awaiting_approval') OR (requires_approval AND (decision IS
    NULL)))),
  CONSTRAINT actions_decision_check CHECK ((((decision IS NULL) = (decided_at IS NULL)) AND ((decision IS NULL) =
    (decided_by IS NULL)) AND ((decision IS NOT NULL) OR (decision_note IS NULL)))),
  CONSTRAINT actions_due_when_under_way_check CHECK (((due_at IS NOT NULL) = status IN ('approved', 'executing'))),
  CONSTRAINT actions_error_when_failed_check CHECK (((error IS NULL) OR (status = 'failed'))),
  CONSTRAINT actions_finished_when_executed_check CHECK (((execution_finished_at IS NOT NULL) = status IN ('succeeded',
    'failed', 'unknown', 'not_executed'))),
  CONSTRAINT actions_invocation_id_check CHECK (((length(invocation_id) >= 1) AND (length(invocation_id) <= 200))),
  CONSTRAINT actions_lease_check CHECK (((lease_expires_at IS NULL) OR ((lease_id IS NOT NULL) AND status IN ('approved',
    'executing')))),
  CONSTRAINT actions_look_up_check CHECK (((look_up_until IS NULL) OR (look_up_count > 0))),
  CONSTRAINT actions_not_executed_when_reconciled_check CHECK (((status <> 'not_executed') OR (reconciliation IS NOT
    NULL))),
  CONSTRAINT actions_reason_check CHECK ((jsonb_typeof(reason) = 'object')),
  CONSTRAINT actions_reconciled_status_check CHECK (((reconciliation IS NULL) OR (status = reconciliation))),
  CONSTRAINT actions_reconciliation_check CHECK ((((reconciliation IS NULL) = (reconciled_at IS NULL)) AND
    ((reconciliation IS NULL) = (reconciled_by IS NULL)) AND ((reconciliation IS NULL) = (reconciliation_note IS
    NULL)))),
  CONSTRAINT actions_rejected_when_decided_check CHECK (((status = 'rejected') = (NOT (decision IS DISTINCT FROM
    'rejected')))),
  CONSTRAINT actions_result_when_succeeded_check CHECK (((result IS NULL) OR (status = 'succeeded'))),
  CONSTRAINT actions_started_when_executed_check CHECK (((execution_started_at IS NOT NULL) = status IN ('executing',
    'succeeded', 'failed', 'unknown', 'not_executed'))),
  CONSTRAINT actions_summary_check CHECK (((length(summary) >= 1) AND (length(summary) <= 2000))),
  CONSTRAINT actions_task_or_chat_check CHECK ((((task_id IS NULL) = (chat_id IS NOT NULL)) AND ((chat_id IS NULL) =
    (message_id IS NULL)))),
  CONSTRAINT actions_timeout_ms_check CHECK (((timeout_ms >= 1) AND (timeout_ms <= CASE kind WHEN 'git_push' THEN 600000
    ELSE 60000 END))),
  CONSTRAINT actions_tool_check CHECK (((length(tool) >= 1) AND (length(tool) <= 128))),
  CONSTRAINT actions_tool_digest_check CHECK (((tool_digest ~ '^[0-9a-f]{64}$') AND ((kind = 'git_push') = (tool_digest IS
    NULL)))),
  CONSTRAINT actions_version_check CHECK ((version >= 1))
);
-- Not sampled (SET STATISTICS 0): integration_key, provider, invocation_id, tool, summary, arguments, arguments_schema,
-- decided_by, decision_note, result, error, reconciliation_note, reconciled_by, reason
CREATE INDEX actions_agent_profile_id_idx ON app.actions USING btree (organization_id, agent_profile_id, created_at,
  id);
CREATE INDEX actions_all_created_at_idx ON app.actions USING btree (created_at, id);
CREATE INDEX actions_chat_id_idx ON app.actions USING btree (organization_id, chat_id, created_at, id) WHERE (chat_id IS
  NOT NULL);
CREATE INDEX actions_created_at_idx ON app.actions USING btree (organization_id, created_at, id);
CREATE INDEX actions_decision_idx ON app.actions USING btree (organization_id, decision, created_at, id);
CREATE INDEX actions_due_at_idx ON app.actions USING btree (due_at) WHERE (due_at IS NOT NULL);
CREATE INDEX actions_due_at_turns_idx ON app.actions USING btree (organization_id, due_at) WHERE (due_at IS NOT NULL);
CREATE INDEX actions_expires_at_idx ON app.actions USING btree (expires_at) WHERE (status = 'awaiting_approval');
CREATE INDEX actions_expires_at_turns_idx ON app.actions USING btree (organization_id, expires_at) WHERE (status =
  'awaiting_approval');
CREATE INDEX actions_integration_id_idx ON app.actions USING btree (organization_id, integration_id, created_at, id);
CREATE INDEX actions_kind_idx ON app.actions USING btree (organization_id, kind, created_at, id);
CREATE INDEX actions_open_integration_idx ON app.actions USING btree (organization_id, integration_id) WHERE status IN
  ('awaiting_approval', 'approved');
CREATE INDEX actions_open_message_idx ON app.actions USING btree (organization_id, message_id) WHERE (status IN
  ('awaiting_approval', 'approved') AND (message_id IS NOT NULL));
CREATE INDEX actions_open_task_idx ON app.actions USING btree (organization_id, task_id) WHERE (status IN
  ('awaiting_approval', 'approved') AND (task_id IS NOT NULL));
CREATE INDEX actions_proposal_sha256_idx ON app.actions USING btree (organization_id, proposal_sha256);
CREATE INDEX actions_risk_idx ON app.actions USING btree (organization_id, risk, created_at, id);
CREATE INDEX actions_run_id_idx ON app.actions USING btree (organization_id, run_id, created_at, id);
CREATE INDEX actions_status_idx ON app.actions USING btree (organization_id, status, created_at, id);
CREATE INDEX actions_task_id_idx ON app.actions USING btree (organization_id, task_id, created_at, id) WHERE (task_id IS
  NOT NULL);
ALTER TABLE app.actions ENABLE ROW LEVEL SECURITY;
ALTER TABLE app.actions FORCE ROW LEVEL SECURITY;
CREATE POLICY admin_read ON app.actions FOR SELECT TO runner_admin USING (((((SELECT app.current_organization()) IS
  NULL) OR (organization_id = (SELECT app.current_organization()))) AND (organization_id <> ALL ((SELECT
  app.organizations_deleted())::uuid[]))));
CREATE POLICY global_read ON app.actions FOR SELECT TO runner_global USING (true);
CREATE POLICY owner_all ON app.actions TO runner_owner USING (true) WITH CHECK (true);
CREATE POLICY report_read ON app.actions FOR SELECT TO runner_report USING ((app.report_shows(organization_id, (SELECT
  (pg_has_role(SESSION_USER, 'runner_report'::name, 'member') OR (EXISTS (SELECT FROM app.analysts a WHERE ((a.login =
  SESSION_USER) AND (a.login_oid = ((to_regrole(quote_ident(SESSION_USER)))::oid)::bigint) AND a.all_organizations))))),
  ARRAY(SELECT g.organization_id FROM app.analyst_grants g WHERE ((g.login = SESSION_USER) AND (g.login_oid =
  ((to_regrole(quote_ident(SESSION_USER)))::oid)::bigint)))) AND (organization_id = ANY (ARRAY(SELECT o.id FROM
  app.organizations o)))));
CREATE POLICY scoped_all ON app.actions TO runner_scoped USING ((organization_id = (SELECT app.current_organization())))
  WITH CHECK ((organization_id = (SELECT app.current_organization())));
CREATE POLICY tenant_read ON app.actions FOR SELECT TO runner_api USING ((organization_id = (SELECT
  app.current_organization())));
GRANT SELECT (organization_id, id, integration_id, integration_key, provider, agent_profile_id, task_id, run_id,
  chat_id, message_id, invocation_id, retry_of, kind, tool, summary, risk, arguments_sha256, timeout_ms, status,
  version, requires_approval, decision, decided_by, decision_note, decided_at, execution_attempts, execution_started_at,
  execution_finished_at, error, lease_expires_at, due_at, look_up_count, look_up_until, reconciliation,
  reconciliation_note, reconciled_by, reconciled_at, reason, expires_at, created_at, updated_at) ON app.actions TO
  runner_admin;
GRANT SELECT ON app.actions TO runner_api;
GRANT SELECT (organization_id, id, status, due_at, expires_at) ON app.actions TO runner_global;
GRANT SELECT (organization_id, id, integration_id, integration_key, provider, agent_profile_id, task_id, run_id,
  chat_id, retry_of, kind, tool, risk, status, requires_approval, decision, decided_at, execution_attempts,
  execution_started_at, execution_finished_at, error, reconciliation, reconciled_at, reason, created_at, updated_at) ON
  app.actions TO runner_report;
GRANT SELECT, INSERT, UPDATE, DELETE ON app.actions TO runner_scoped;

-- agent_catalogs ──────────────────────────────────────────────────────────────────────────────────────────────────────
-- Published catalogs of profile templates, for all organizations; never changed or removed. The newest is current.
CREATE TABLE app.agent_catalogs (
  revision text NOT NULL,                                         -- SHA-256 of its canonical JSON, in hex.
  ordinal bigint NOT NULL GENERATED ALWAYS AS IDENTITY,           -- The order of publication.
  catalog jsonb NOT NULL,                                         -- The templates and what they share.
  published_at timestamptz NOT NULL DEFAULT now(),                -- When it was published.
  CONSTRAINT agent_catalogs_pkey PRIMARY KEY (revision),
  CONSTRAINT agent_catalogs_ordinal_key UNIQUE (ordinal),
  CONSTRAINT agent_catalogs_catalog_check CHECK ((jsonb_typeof(catalog) = 'object')),
  CONSTRAINT agent_catalogs_revision_check CHECK ((revision ~ '^[0-9a-f]{64}$'))
);
-- Not sampled (SET STATISTICS 0): catalog
CREATE TRIGGER agent_catalogs_keep BEFORE DELETE OR UPDATE ON app.agent_catalogs FOR EACH ROW EXECUTE FUNCTION
  app.agent_catalogs_keep();
GRANT SELECT (revision, ordinal, catalog, published_at) ON app.agent_catalogs TO runner_admin;
GRANT SELECT ON app.agent_catalogs TO runner_api, runner_scoped;
GRANT SELECT, INSERT ON app.agent_catalogs TO runner_global;

-- agent_profiles ──────────────────────────────────────────────────────────────────────────────────────────────────────
-- The agents of an organization.
CREATE TABLE app.agent_profiles (
  organization_id uuid NOT NULL,                                  -- The organization it belongs to.
  id uuid NOT NULL DEFAULT app.uuid_v7(),                         -- Id of the profile.
  key text NOT NULL,                                              -- Stable name; unique in the organization.
  name text NOT NULL,                                             -- For people.
  kind app.agent_profile_kind NOT NULL,                           -- operator: anything. chat: replies in chats. department: its own tasks.
  department app.department,                                      -- Of department profiles.
  status app.agent_profile_status NOT NULL DEFAULT 'enabled',     -- disabled: it is given no work.
  root_uri text NOT NULL,                                         -- Root of its files, a logical address.
  instructions_uri text NOT NULL,                                 -- Its instructions, a logical address.
  config jsonb NOT NULL,                                          -- Run mode, capacity, tools, skills, model, and the template it was made from.
  tool_policy_narrowed boolean NOT NULL DEFAULT false,            -- A person took tool policies away: provisioning never brings them back.
  deleted_at timestamptz,                                         -- When it was deleted; its history stays.
  created_at timestamptz NOT NULL DEFAULT now(),                  -- When it was made.
  updated_at timestamptz NOT NULL DEFAULT now(),                  -- When it was last changed.
  CONSTRAINT agent_profiles_pkey PRIMARY KEY (organization_id, id),
  CONSTRAINT agent_profiles_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES app.organizations(id) ON DELETE
    CASCADE,
  CONSTRAINT agent_profiles_config_check CHECK ((jsonb_typeof(config) = 'object')),
  CONSTRAINT agent_profiles_department_when_department_check CHECK (((kind = 'department') = (department IS NOT NULL))),
  CONSTRAINT agent_profiles_disabled_when_deleted_check CHECK (((deleted_at IS NULL) OR (status = 'disabled'))),
  CONSTRAINT agent_profiles_key_check CHECK (((key ~ '^[a-z0-9]+(-[a-z0-9]+)*$') AND (length(key) <= 63))),
  CONSTRAINT agent_profiles_name_check CHECK (((length(name) >= 1) AND (length(name) <= 200)))
);
-- Not sampled (SET STATISTICS 0): key, name, config
CREATE INDEX agent_profiles_all_key_idx ON app.agent_profiles USING btree (organization_id, key);
CREATE INDEX agent_profiles_created_at_idx ON app.agent_profiles USING btree (organization_id, created_at DESC, id
  DESC);
CREATE UNIQUE INDEX agent_profiles_key_idx ON app.agent_profiles USING btree (organization_id, key) WHERE (deleted_at IS
  NULL);
CREATE TRIGGER agent_profiles_wake AFTER UPDATE OF key ON app.agent_profiles FOR EACH ROW WHEN ((new.key <> old.key))
  EXECUTE FUNCTION app.agent_profiles_wake();
ALTER TABLE app.agent_profiles ENABLE ROW LEVEL SECURITY;
ALTER TABLE app.agent_profiles FORCE ROW LEVEL SECURITY;
CREATE POLICY admin_read ON app.agent_profiles FOR SELECT TO runner_admin USING (((((SELECT app.current_organization())
  IS NULL) OR (organization_id = (SELECT app.current_organization()))) AND (organization_id <> ALL ((SELECT
  app.organizations_deleted())::uuid[]))));
CREATE POLICY global_read ON app.agent_profiles FOR SELECT TO runner_global USING (true);
CREATE POLICY owner_all ON app.agent_profiles TO runner_owner USING (true) WITH CHECK (true);
CREATE POLICY report_read ON app.agent_profiles FOR SELECT TO runner_report USING ((app.report_shows(organization_id,
  (SELECT (pg_has_role(SESSION_USER, 'runner_report'::name, 'member') OR (EXISTS (SELECT FROM app.analysts a WHERE
  ((a.login = SESSION_USER) AND (a.login_oid = ((to_regrole(quote_ident(SESSION_USER)))::oid)::bigint) AND
  a.all_organizations))))), ARRAY(SELECT g.organization_id FROM app.analyst_grants g WHERE ((g.login = SESSION_USER) AND
  (g.login_oid = ((to_regrole(quote_ident(SESSION_USER)))::oid)::bigint)))) AND (organization_id = ANY (ARRAY(SELECT
  o.id FROM app.organizations o)))));
CREATE POLICY scoped_all ON app.agent_profiles TO runner_scoped USING ((organization_id = (SELECT
  app.current_organization()))) WITH CHECK ((organization_id = (SELECT app.current_organization())));
CREATE POLICY tenant_read ON app.agent_profiles FOR SELECT TO runner_api, runner_jobs USING ((organization_id = (SELECT
  app.current_organization())));
GRANT SELECT (organization_id, id, key, name, kind, department, status, root_uri, instructions_uri, config,
  tool_policy_narrowed, deleted_at, created_at, updated_at) ON app.agent_profiles TO runner_admin;
GRANT SELECT ON app.agent_profiles TO runner_api, runner_global, runner_jobs;
GRANT SELECT (organization_id, id, key, name, kind, department, status, config, deleted_at, created_at, updated_at) ON
  app.agent_profiles TO runner_report;
GRANT SELECT, INSERT, UPDATE, DELETE ON app.agent_profiles TO runner_scoped;

-- analyst_grants ──────────────────────────────────────────────────────────────────────────────────────────────────────
-- Which organizations the login of an analyst reads.
CREATE TABLE app.analyst_grants (
  organization_id uuid NOT NULL,                                  -- The organization.
  login text NOT NULL,                                            -- Name of the login.
  login_oid bigint NOT NULL,                                      -- Number of the login when it was given this; another one of its name is given nothing by it.
  created_at timestamptz NOT NULL DEFAULT now(),                  -- When it was given.
  CONSTRAINT analyst_grants_pkey PRIMARY KEY (organization_id, login),
  CONSTRAINT analyst_grants_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES app.organizations(id) ON DELETE
    CASCADE,
  CONSTRAINT analyst_grants_login_check CHECK (((login ~ '^[a-z][a-z0-9_]*$') AND (length(login) <= 63)))
);
CREATE INDEX analyst_grants_login_idx ON app.analyst_grants USING btree (login, login_oid, organization_id);
ALTER TABLE app.analyst_grants ENABLE ROW LEVEL SECURITY;
ALTER TABLE app.analyst_grants FORCE ROW LEVEL SECURITY;
CREATE POLICY global_all ON app.analyst_grants TO runner_global USING (true) WITH CHECK (true);
CREATE POLICY owner_all ON app.analyst_grants TO runner_owner USING (true) WITH CHECK (true);
CREATE POLICY report_read ON app.analyst_grants FOR SELECT TO runner_report USING (((login = SESSION_USER) AND
  (login_oid = ((to_regrole(quote_ident(SESSION_USER)))::oid)::bigint)));
GRANT SELECT, INSERT, DELETE ON app.analyst_grants TO runner_global;
GRANT SELECT ON app.analyst_grants TO runner_report;

-- analysts ────────────────────────────────────────────────────────────────────────────────────────────────────────────
-- Logins made for analysts. The logins themselves, and their passwords, are Postgres's.
CREATE TABLE app.analysts (
  login text NOT NULL,                                            -- Name of the login.
  login_oid bigint NOT NULL,                                      -- Number of the login when it was given this; another one of its name is given nothing by it.
  all_organizations boolean NOT NULL DEFAULT false,               -- Reads every organization, also those that are made later.
  created_at timestamptz NOT NULL DEFAULT now(),                  -- When the login was made.
  CONSTRAINT analysts_pkey PRIMARY KEY (login),
  CONSTRAINT analysts_login_check CHECK (((login ~ '^[a-z][a-z0-9_]*$') AND (length(login) <= 63)))
);
GRANT SELECT, INSERT, UPDATE, DELETE ON app.analysts TO runner_global;
GRANT SELECT ON app.analysts TO runner_report;

-- audit_entries ───────────────────────────────────────────────────────────────────────────────────────────────────────
-- Decisions of people and administrators, in the order in which they were taken. Append-only; an organization's entries
-- go when it is purged.
CREATE TABLE app.audit_entries (
  organization_id uuid NOT NULL,                                  -- The organization that the decision is about; all zero for the whole platform.
  id uuid NOT NULL DEFAULT app.uuid_v7(),                         -- UUIDv7 of the entry.
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),      -- When the decision was carried out.
  actor_kind app.audit_actor_kind NOT NULL,                       -- Who decided: a member of the organization (owner), a platform operator through the API (operator), an administrator (admin).
  actor text NOT NULL,                                            -- The subject of an owner, how an operator was let in (token or open), the name of an administrator's token. Never a secret.
  action text NOT NULL,                                           -- What was decided, as noun.verb, for example task.cancel.
  subject_kind text NOT NULL,                                     -- What kind of thing it was decided about, for example task.
  subject_id text,                                                -- Which one; null where it was never made.
  arguments jsonb NOT NULL DEFAULT '{}',                          -- What the decision was called with: long texts cut, values with the names of secrets left out.
  outcome app.audit_outcome NOT NULL,                             -- done, or refused by a transition that changed state all the same.
  code text,                                                      -- The error code of a refusal.
  result jsonb NOT NULL DEFAULT '{}',                             -- What the decision led to, in short.
  request_id text,                                                -- The id of the request, as in its response and in the logs.
  CONSTRAINT audit_entries_pkey PRIMARY KEY (organization_id, id),
  CONSTRAINT audit_entries_action_check CHECK (((action ~ '^[a-z]+(_[a-z]+)*\.[a-z]+(_[a-z]+)*$') AND (length(action) <=
    100))),
  CONSTRAINT audit_entries_actor_check CHECK (((length(actor) >= 1) AND (length(actor) <= 255))),
  CONSTRAINT audit_entries_arguments_check CHECK (((jsonb_typeof(arguments) = 'object') AND (octet_length(arguments) <=
    16384))),
  CONSTRAINT audit_entries_code_when_refused_check CHECK (((outcome = 'refused') = (code IS NOT NULL))),
  CONSTRAINT audit_entries_request_id_check CHECK (((length(request_id) >= 1) AND (length(request_id) <= 128))),
  CONSTRAINT audit_entries_result_check CHECK (((jsonb_typeof(result) = 'object') AND (octet_length(result) <= 16384))),
  CONSTRAINT audit_entries_subject_id_check CHECK (((length(subject_id) >= 1) AND (length(subject_id) <= 255))),
  CONSTRAINT audit_entries_subject_kind_check CHECK (((subject_kind ~ '^[a-z]+(_[a-z]+)*$') AND (length(subject_kind) <=
    100)))
);
-- Not sampled (SET STATISTICS 0): actor, action, subject_kind, subject_id, arguments, code, result, request_id
CREATE INDEX audit_entries_action_idx ON app.audit_entries USING btree (organization_id, action, created_at, id);
CREATE INDEX audit_entries_actor_kind_idx ON app.audit_entries USING btree (organization_id, actor_kind, created_at,
  id);
CREATE INDEX audit_entries_all_created_at_idx ON app.audit_entries USING btree (created_at, id);
CREATE INDEX audit_entries_created_at_idx ON app.audit_entries USING btree (organization_id, created_at, id);
CREATE TRIGGER audit_entries_keep BEFORE DELETE OR UPDATE ON app.audit_entries FOR EACH ROW EXECUTE FUNCTION
  app.audit_entries_keep();
CREATE TRIGGER audit_entries_keep_all BEFORE TRUNCATE ON app.audit_entries FOR EACH STATEMENT EXECUTE FUNCTION
  app.audit_entries_keep();
ALTER TABLE app.audit_entries ENABLE ROW LEVEL SECURITY;
ALTER TABLE app.audit_entries FORCE ROW LEVEL SECURITY;
CREATE POLICY admin_read ON app.audit_entries FOR SELECT TO runner_admin USING ((((SELECT app.current_organization()) IS
  NULL) OR (organization_id = (SELECT app.current_organization()))));
CREATE POLICY owner_all ON app.audit_entries TO runner_owner USING (true) WITH CHECK (true);
CREATE POLICY report_read ON app.audit_entries FOR SELECT TO runner_report USING ((app.report_shows(organization_id,
  (SELECT (pg_has_role(SESSION_USER, 'runner_report'::name, 'member') OR (EXISTS (SELECT FROM app.analysts a WHERE
  ((a.login = SESSION_USER) AND (a.login_oid = ((to_regrole(quote_ident(SESSION_USER)))::oid)::bigint) AND
  a.all_organizations))))), ARRAY(SELECT g.organization_id FROM app.analyst_grants g WHERE ((g.login = SESSION_USER) AND
  (g.login_oid = ((to_regrole(quote_ident(SESSION_USER)))::oid)::bigint)))) AND (organization_id = ANY (ARRAY(SELECT
  o.id FROM app.organizations o)))));
CREATE POLICY scoped_all ON app.audit_entries TO runner_scoped USING ((organization_id = (SELECT
  app.current_organization()))) WITH CHECK ((organization_id = (SELECT app.current_organization())));
CREATE POLICY tenant_read ON app.audit_entries FOR SELECT TO runner_api USING ((organization_id = (SELECT
  app.current_organization())));
GRANT SELECT ON app.audit_entries TO runner_admin, runner_api;
GRANT SELECT (organization_id, id, created_at, actor_kind, actor, action, subject_kind, subject_id, outcome, code,
  request_id) ON app.audit_entries TO runner_report;
GRANT SELECT, INSERT, DELETE ON app.audit_entries TO runner_scoped;

-- chat_attachments ────────────────────────────────────────────────────────────────────────────────────────────────────
-- Files that people attached to a chat.
CREATE TABLE app.chat_attachments (
  organization_id uuid NOT NULL,                                  -- The organization it belongs to.
  chat_id uuid NOT NULL,                                          -- The chat.
  id uuid NOT NULL,                                               -- Chosen by the client; unique in the chat.
  file_name text NOT NULL,                                        -- As the person called it.
  media_type text NOT NULL,                                       -- As its content says.
  size_bytes bigint NOT NULL,                                     -- In bytes.
  sha256 text NOT NULL,                                           -- SHA-256 of the bytes, in hex.
  storage_key text NOT NULL,                                      -- Where the bytes lie in the object storage; never shown.
  created_at timestamptz NOT NULL DEFAULT now(),                  -- When it was made.
  CONSTRAINT chat_attachments_pkey PRIMARY KEY (organization_id, chat_id, id),
  CONSTRAINT chat_attachments_chat_id_fkey FOREIGN KEY (organization_id, chat_id) REFERENCES app.chats(organization_id,
    id) ON DELETE CASCADE,
  CONSTRAINT chat_attachments_file_name_check CHECK (((length(file_name) >= 1) AND (length(file_name) <= 255))),
  CONSTRAINT chat_attachments_sha256_check CHECK ((sha256 ~ '^[0-9a-f]{64}$')),
  CONSTRAINT chat_attachments_size_bytes_check CHECK (((size_bytes >= 0) AND (size_bytes <= 52428800)))
);
-- Not sampled (SET STATISTICS 0): size_bytes
ALTER TABLE app.chat_attachments ENABLE ROW LEVEL SECURITY;
ALTER TABLE app.chat_attachments FORCE ROW LEVEL SECURITY;
CREATE POLICY admin_read ON app.chat_attachments FOR SELECT TO runner_admin USING (((((SELECT
  app.current_organization()) IS NULL) OR (organization_id = (SELECT app.current_organization()))) AND (organization_id
  <> ALL ((SELECT app.organizations_deleted())::uuid[])) AND (EXISTS (SELECT 1 FROM app.chats c WHERE
  ((c.organization_id = chat_attachments.organization_id) AND (c.id = chat_attachments.chat_id))))));
CREATE POLICY owner_all ON app.chat_attachments TO runner_owner USING (true) WITH CHECK (true);
CREATE POLICY report_read ON app.chat_attachments FOR SELECT TO runner_report USING ((app.report_shows(organization_id,
  (SELECT (pg_has_role(SESSION_USER, 'runner_report'::name, 'member') OR (EXISTS (SELECT FROM app.analysts a WHERE
  ((a.login = SESSION_USER) AND (a.login_oid = ((to_regrole(quote_ident(SESSION_USER)))::oid)::bigint) AND
  a.all_organizations))))), ARRAY(SELECT g.organization_id FROM app.analyst_grants g WHERE ((g.login = SESSION_USER) AND
  (g.login_oid = ((to_regrole(quote_ident(SESSION_USER)))::oid)::bigint)))) AND (organization_id = ANY (ARRAY(SELECT
  o.id FROM app.organizations o)))));
CREATE POLICY scoped_all ON app.chat_attachments TO runner_scoped USING ((organization_id = (SELECT
  app.current_organization()))) WITH CHECK ((organization_id = (SELECT app.current_organization())));
CREATE POLICY tenant_read ON app.chat_attachments FOR SELECT TO runner_api USING ((organization_id = (SELECT
  app.current_organization())));
GRANT SELECT (organization_id, chat_id, id, file_name, media_type, size_bytes, sha256, created_at) ON
  app.chat_attachments TO runner_admin;
GRANT SELECT ON app.chat_attachments TO runner_api;
GRANT SELECT (organization_id, chat_id, size_bytes) ON app.chat_attachments TO runner_report;
GRANT SELECT, INSERT, UPDATE, DELETE ON app.chat_attachments TO runner_scoped;

-- chats ───────────────────────────────────────────────────────────────────────────────────────────────────────────────
-- Conversations of people with the chat profile.
CREATE TABLE app.chats (
  organization_id uuid NOT NULL,                                  -- The organization it belongs to.
  id uuid NOT NULL DEFAULT app.uuid_v7(),                         -- Id of the chat.
  status app.chat_status NOT NULL DEFAULT 'open',                 -- archived ones are removed after 30 days.
  is_onboarding boolean NOT NULL DEFAULT false,                   -- The chat of the onboarding, which nobody changes.
  title text NOT NULL,                                            -- For people.
  search_title text NOT NULL GENERATED ALWAYS AS (app.search_fold(title)) STORED,  -- The title, folded for search.
  summary text,                                                   -- What it is about, as the agent sums it up.
  harness_session_id text,                                        -- The session of the runtime that replies; never shown.
  settings jsonb NOT NULL DEFAULT '{"pinnedTaskIds": []}',        -- Pinned tasks.
  last_message_at timestamptz NOT NULL DEFAULT now(),             -- When its last message came; at first its creation.
  archived_at timestamptz,                                        -- When it was archived.
  removed_at timestamptz,                                         -- Its removal has begun: nobody sees it.
  created_at timestamptz NOT NULL DEFAULT now(),                  -- When it was made.
  updated_at timestamptz NOT NULL DEFAULT now(),                  -- When it was last changed.
  CONSTRAINT chats_pkey PRIMARY KEY (organization_id, id),
  CONSTRAINT chats_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES app.organizations(id) ON DELETE CASCADE,
  CONSTRAINT chats_archived_at_when_archived_check CHECK (((status = 'archived') = (archived_at IS NOT NULL))),
  CONSTRAINT chats_archived_when_removed_check CHECK (((removed_at IS NULL) OR (status = 'archived'))),
  CONSTRAINT chats_settings_check CHECK ((jsonb_typeof((settings -> 'pinnedTaskIds')) = 'array')),
  CONSTRAINT chats_title_check CHECK (((length(title) >= 1) AND (length(title) <= 200)))
) WITH (fillfactor=80);
-- Not sampled (SET STATISTICS 0): settings
CREATE INDEX chats_archived_at_idx ON app.chats USING btree (archived_at) WHERE (status = 'archived');
CREATE INDEX chats_archived_at_turns_idx ON app.chats USING btree (organization_id, archived_at) WHERE (status =
  'archived');
CREATE INDEX chats_last_message_at_idx ON app.chats USING btree (organization_id, last_message_at, id);
CREATE UNIQUE INDEX chats_onboarding_idx ON app.chats USING btree (organization_id) WHERE is_onboarding;
CREATE INDEX chats_search_idx ON app.chats USING gin (organization_id, search_title public.gin_trgm_ops);
CREATE INDEX chats_status_idx ON app.chats USING btree (organization_id, status, last_message_at, id);
CREATE TRIGGER chats_wake AFTER UPDATE OF status ON app.chats FOR EACH ROW WHEN ((new.status <> old.status)) EXECUTE
  FUNCTION app.chats_wake();
ALTER TABLE app.chats ENABLE ROW LEVEL SECURITY;
ALTER TABLE app.chats FORCE ROW LEVEL SECURITY;
CREATE POLICY admin_read ON app.chats FOR SELECT TO runner_admin USING (((((SELECT app.current_organization()) IS NULL)
  OR (organization_id = (SELECT app.current_organization()))) AND (organization_id <> ALL ((SELECT
  app.organizations_deleted())::uuid[])) AND (removed_at IS NULL)));
CREATE POLICY global_read ON app.chats FOR SELECT TO runner_global USING (true);
CREATE POLICY owner_all ON app.chats TO runner_owner USING (true) WITH CHECK (true);
CREATE POLICY report_read ON app.chats FOR SELECT TO runner_report USING ((app.report_shows(organization_id, (SELECT
  (pg_has_role(SESSION_USER, 'runner_report'::name, 'member') OR (EXISTS (SELECT FROM app.analysts a WHERE ((a.login =
  SESSION_USER) AND (a.login_oid = ((to_regrole(quote_ident(SESSION_USER)))::oid)::bigint) AND a.all_organizations))))),
  ARRAY(SELECT g.organization_id FROM app.analyst_grants g WHERE ((g.login = SESSION_USER) AND (g.login_oid =
  ((to_regrole(quote_ident(SESSION_USER)))::oid)::bigint)))) AND (organization_id = ANY (ARRAY(SELECT o.id FROM
  app.organizations o)))));
CREATE POLICY scoped_all ON app.chats TO runner_scoped USING ((organization_id = (SELECT app.current_organization())))
  WITH CHECK ((organization_id = (SELECT app.current_organization())));
CREATE POLICY tenant_read ON app.chats FOR SELECT TO runner_api USING (((organization_id = (SELECT
  app.current_organization())) AND (removed_at IS NULL)));
GRANT SELECT (organization_id, id, status, is_onboarding, title, summary, settings, last_message_at, archived_at,
  created_at, updated_at) ON app.chats TO runner_admin;
GRANT SELECT ON app.chats TO runner_api, runner_global;
GRANT SELECT (organization_id, id, status, is_onboarding, last_message_at, archived_at, removed_at, created_at,
  updated_at) ON app.chats TO runner_report;
GRANT SELECT, INSERT, UPDATE, DELETE ON app.chats TO runner_scoped;

-- context_documents ───────────────────────────────────────────────────────────────────────────────────────────────────
-- The documents of a revision.
CREATE TABLE app.context_documents (
  organization_id uuid NOT NULL,                                  -- The organization it belongs to.
  scope app.context_scope NOT NULL,                               -- Of the revision.
  revision integer NOT NULL,                                      -- The revision.
  path text NOT NULL,                                             -- Where agents find it.
  kind app.context_document_kind NOT NULL,                        -- What it holds.
  storage_key text NOT NULL,                                      -- Where the bytes lie in the object storage; never shown.
  size_bytes bigint NOT NULL,                                     -- In bytes.
  sha256 text NOT NULL,                                           -- SHA-256 of the bytes, in hex.
  source_ids jsonb NOT NULL DEFAULT '[]',                         -- Sources that its entries cite.
  CONSTRAINT context_documents_pkey PRIMARY KEY (organization_id, scope, revision, path),
  CONSTRAINT context_documents_scope_revision_fkey FOREIGN KEY (organization_id, scope, revision) REFERENCES
    app.context_revisions(organization_id, scope, revision) ON DELETE CASCADE,
  CONSTRAINT context_documents_path_check CHECK (((length(path) >= 1) AND (length(path) <= 900))),
  CONSTRAINT context_documents_sha256_check CHECK ((sha256 ~ '^[0-9a-f]{64}$')),
  CONSTRAINT context_documents_size_bytes_check CHECK (((size_bytes >= 0) AND (size_bytes <= 1048576))),
  CONSTRAINT context_documents_source_ids_check CHECK ((jsonb_typeof(source_ids) = 'array'))
);
-- Not sampled (SET STATISTICS 0): size_bytes, source_ids
CREATE TRIGGER context_documents_keep BEFORE UPDATE ON app.context_documents FOR EACH ROW EXECUTE FUNCTION
  app.context_rows_keep();
ALTER TABLE app.context_documents ENABLE ROW LEVEL SECURITY;
ALTER TABLE app.context_documents FORCE ROW LEVEL SECURITY;
CREATE POLICY admin_read ON app.context_documents FOR SELECT TO runner_admin USING (((((SELECT
  app.current_organization()) IS NULL) OR (organization_id = (SELECT app.current_organization()))) AND (organization_id
  <> ALL ((SELECT app.organizations_deleted())::uuid[]))));
CREATE POLICY owner_all ON app.context_documents TO runner_owner USING (true) WITH CHECK (true);
CREATE POLICY report_read ON app.context_documents FOR SELECT TO runner_report USING ((app.report_shows(organization_id,
  (SELECT (pg_has_role(SESSION_USER, 'runner_report'::name, 'member') OR (EXISTS (SELECT FROM app.analysts a WHERE
  ((a.login = SESSION_USER) AND (a.login_oid = ((to_regrole(quote_ident(SESSION_USER)))::oid)::bigint) AND
  a.all_organizations))))), ARRAY(SELECT g.organization_id FROM app.analyst_grants g WHERE ((g.login = SESSION_USER) AND
  (g.login_oid = ((to_regrole(quote_ident(SESSION_USER)))::oid)::bigint)))) AND (organization_id = ANY (ARRAY(SELECT
  o.id FROM app.organizations o)))));
CREATE POLICY scoped_all ON app.context_documents TO runner_scoped USING ((organization_id = (SELECT
  app.current_organization()))) WITH CHECK ((organization_id = (SELECT app.current_organization())));
CREATE POLICY tenant_read ON app.context_documents FOR SELECT TO runner_api, runner_jobs USING ((organization_id =
  (SELECT app.current_organization())));
GRANT SELECT (organization_id, scope, revision, path, kind, size_bytes, sha256, source_ids) ON app.context_documents TO
  runner_admin;
GRANT SELECT ON app.context_documents TO runner_api, runner_jobs;
GRANT SELECT (organization_id, scope, revision, size_bytes) ON app.context_documents TO runner_report;
GRANT SELECT, INSERT, UPDATE, DELETE ON app.context_documents TO runner_scoped;

-- context_health_reports ──────────────────────────────────────────────────────────────────────────────────────────────
-- Assessments of the context. A report never changes.
CREATE TABLE app.context_health_reports (
  organization_id uuid NOT NULL,                                  -- The organization it belongs to.
  revision integer NOT NULL,                                      -- Its number.
  version integer NOT NULL,                                       -- Of the format of its file.
  assessment app.context_assessment NOT NULL,                     -- What was assessed.
  context jsonb NOT NULL,                                         -- The revisions that were assessed, by scope.
  storage_key text NOT NULL,                                      -- Where the bytes lie in the object storage; never shown.
  size_bytes bigint NOT NULL,                                     -- In bytes.
  sha256 text NOT NULL,                                           -- SHA-256 of the bytes, in hex.
  created_at timestamptz NOT NULL DEFAULT now(),                  -- When it was made.
  CONSTRAINT context_health_reports_pkey PRIMARY KEY (organization_id, revision),
  CONSTRAINT context_health_reports_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES app.organizations(id) ON
    DELETE CASCADE,
  CONSTRAINT context_health_reports_context_check CHECK ((jsonb_typeof(context) = 'object')),
  CONSTRAINT context_health_reports_revision_check CHECK ((revision >= 1)),
  CONSTRAINT context_health_reports_sha256_check CHECK ((sha256 ~ '^[0-9a-f]{64}$')),
  CONSTRAINT context_health_reports_size_bytes_check CHECK (((size_bytes >= 0) AND (size_bytes <= 16777216))),
  CONSTRAINT context_health_reports_version_check CHECK (((version >= 1) AND (version <= 3)))
);
-- Not sampled (SET STATISTICS 0): context
CREATE INDEX context_health_reports_assessment_idx ON app.context_health_reports USING btree (organization_id,
  assessment, revision);
CREATE TRIGGER context_health_reports_keep BEFORE UPDATE ON app.context_health_reports FOR EACH ROW EXECUTE FUNCTION
  app.context_rows_keep();
ALTER TABLE app.context_health_reports ENABLE ROW LEVEL SECURITY;
ALTER TABLE app.context_health_reports FORCE ROW LEVEL SECURITY;
CREATE POLICY admin_read ON app.context_health_reports FOR SELECT TO runner_admin USING (((((SELECT
  app.current_organization()) IS NULL) OR (organization_id = (SELECT app.current_organization()))) AND (organization_id
  <> ALL ((SELECT app.organizations_deleted())::uuid[]))));
CREATE POLICY global_read ON app.context_health_reports FOR SELECT TO runner_global USING (true);
CREATE POLICY owner_all ON app.context_health_reports TO runner_owner USING (true) WITH CHECK (true);
CREATE POLICY scoped_all ON app.context_health_reports TO runner_scoped USING ((organization_id = (SELECT
  app.current_organization()))) WITH CHECK ((organization_id = (SELECT app.current_organization())));
CREATE POLICY tenant_read ON app.context_health_reports FOR SELECT TO runner_api, runner_jobs USING ((organization_id =
  (SELECT app.current_organization())));
GRANT SELECT (organization_id, revision, version, assessment, context, size_bytes, sha256, created_at) ON
  app.context_health_reports TO runner_admin;
GRANT SELECT ON app.context_health_reports TO runner_api, runner_global, runner_jobs;
GRANT SELECT, INSERT, UPDATE, DELETE ON app.context_health_reports TO runner_scoped;

-- context_publications ────────────────────────────────────────────────────────────────────────────────────────────────
-- Which revision of a scope is current.
CREATE TABLE app.context_publications (
  organization_id uuid NOT NULL,                                  -- The organization it belongs to.
  scope app.context_scope NOT NULL,                               -- The whole organization, or a department.
  revision integer,                                               -- The current one.
  unreadable jsonb NOT NULL DEFAULT '[]',                         -- Documents that the last audit could not read.
  published_at timestamptz NOT NULL DEFAULT now(),                -- Since when.
  CONSTRAINT context_publications_pkey PRIMARY KEY (organization_id, scope),
  CONSTRAINT context_publications_scope_revision_fkey FOREIGN KEY (organization_id, scope, revision) REFERENCES
    app.context_revisions(organization_id, scope, revision) ON DELETE CASCADE,
  CONSTRAINT context_publications_unreadable_check CHECK ((jsonb_typeof(unreadable) = 'array'))
);
-- Not sampled (SET STATISTICS 0): unreadable
CREATE INDEX context_publications_revision_idx ON app.context_publications USING btree (organization_id, scope,
  revision);
ALTER TABLE app.context_publications ENABLE ROW LEVEL SECURITY;
ALTER TABLE app.context_publications FORCE ROW LEVEL SECURITY;
CREATE POLICY admin_read ON app.context_publications FOR SELECT TO runner_admin USING (((((SELECT
  app.current_organization()) IS NULL) OR (organization_id = (SELECT app.current_organization()))) AND (organization_id
  <> ALL ((SELECT app.organizations_deleted())::uuid[]))));
CREATE POLICY global_read ON app.context_publications FOR SELECT TO runner_global USING (true);
CREATE POLICY owner_all ON app.context_publications TO runner_owner USING (true) WITH CHECK (true);
CREATE POLICY report_read ON app.context_publications FOR SELECT TO runner_report USING
  ((app.report_shows(organization_id, (SELECT (pg_has_role(SESSION_USER, 'runner_report'::name, 'member') OR (EXISTS
  (SELECT FROM app.analysts a WHERE ((a.login = SESSION_USER) AND (a.login_oid =
  ((to_regrole(quote_ident(SESSION_USER)))::oid)::bigint) AND a.all_organizations))))), ARRAY(SELECT g.organization_id
  FROM app.analyst_grants g WHERE ((g.login = SESSION_USER) AND (g.login_oid =
  ((to_regrole(quote_ident(SESSION_USER)))::oid)::bigint)))) AND (organization_id = ANY (ARRAY(SELECT o.id FROM
  app.organizations o)))));
CREATE POLICY scoped_all ON app.context_publications TO runner_scoped USING ((organization_id = (SELECT
  app.current_organization()))) WITH CHECK ((organization_id = (SELECT app.current_organization())));
CREATE POLICY tenant_read ON app.context_publications FOR SELECT TO runner_api, runner_jobs USING ((organization_id =
  (SELECT app.current_organization())));
GRANT SELECT (organization_id, scope, revision, unreadable, published_at) ON app.context_publications TO runner_admin;
GRANT SELECT ON app.context_publications TO runner_api, runner_global, runner_jobs;
GRANT SELECT (organization_id, scope, revision, published_at) ON app.context_publications TO runner_report;
GRANT SELECT, INSERT, UPDATE, DELETE ON app.context_publications TO runner_scoped;

-- context_revisions ───────────────────────────────────────────────────────────────────────────────────────────────────
-- What an organization knows of itself, as it was published. A revision never changes.
CREATE TABLE app.context_revisions (
  organization_id uuid NOT NULL,                                  -- The organization it belongs to.
  scope app.context_scope NOT NULL,                               -- The whole organization, or a department.
  revision integer NOT NULL,                                      -- Its number in its scope.
  base_revision integer NOT NULL,                                 -- The one it was made from; 0: the first.
  created_by jsonb NOT NULL,                                      -- Who published it.
  created_at timestamptz NOT NULL DEFAULT now(),                  -- When it was made.
  CONSTRAINT context_revisions_pkey PRIMARY KEY (organization_id, scope, revision),
  CONSTRAINT context_revisions_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES app.organizations(id) ON
    DELETE CASCADE,
  CONSTRAINT context_revisions_revision_check CHECK (((revision >= 1) AND (base_revision = (revision - 1))))
);
-- Not sampled (SET STATISTICS 0): created_by
CREATE TRIGGER context_revisions_keep BEFORE UPDATE ON app.context_revisions FOR EACH ROW EXECUTE FUNCTION
  app.context_rows_keep();
ALTER TABLE app.context_revisions ENABLE ROW LEVEL SECURITY;
ALTER TABLE app.context_revisions FORCE ROW LEVEL SECURITY;
CREATE POLICY admin_read ON app.context_revisions FOR SELECT TO runner_admin USING (((((SELECT
  app.current_organization()) IS NULL) OR (organization_id = (SELECT app.current_organization()))) AND (organization_id
  <> ALL ((SELECT app.organizations_deleted())::uuid[]))));
CREATE POLICY owner_all ON app.context_revisions TO runner_owner USING (true) WITH CHECK (true);
CREATE POLICY report_read ON app.context_revisions FOR SELECT TO runner_report USING ((app.report_shows(organization_id,
  (SELECT (pg_has_role(SESSION_USER, 'runner_report'::name, 'member') OR (EXISTS (SELECT FROM app.analysts a WHERE
  ((a.login = SESSION_USER) AND (a.login_oid = ((to_regrole(quote_ident(SESSION_USER)))::oid)::bigint) AND
  a.all_organizations))))), ARRAY(SELECT g.organization_id FROM app.analyst_grants g WHERE ((g.login = SESSION_USER) AND
  (g.login_oid = ((to_regrole(quote_ident(SESSION_USER)))::oid)::bigint)))) AND (organization_id = ANY (ARRAY(SELECT
  o.id FROM app.organizations o)))));
CREATE POLICY scoped_all ON app.context_revisions TO runner_scoped USING ((organization_id = (SELECT
  app.current_organization()))) WITH CHECK ((organization_id = (SELECT app.current_organization())));
CREATE POLICY tenant_read ON app.context_revisions FOR SELECT TO runner_api, runner_jobs USING ((organization_id =
  (SELECT app.current_organization())));
GRANT SELECT (organization_id, scope, revision, base_revision, created_by, created_at) ON app.context_revisions TO
  runner_admin, runner_report;
GRANT SELECT ON app.context_revisions TO runner_api, runner_jobs;
GRANT SELECT, INSERT, UPDATE, DELETE ON app.context_revisions TO runner_scoped;

-- context_sources ─────────────────────────────────────────────────────────────────────────────────────────────────────
-- Retained evidence. It never changes.
CREATE TABLE app.context_sources (
  organization_id uuid NOT NULL,                                  -- The organization it belongs to.
  id uuid NOT NULL DEFAULT app.uuid_v7(),                         -- Id of the source.
  origin app.context_source_origin NOT NULL,                      -- Where it came from.
  status app.context_source_status NOT NULL DEFAULT 'stored',     -- Only ingested ones ground what is published.
  kind app.context_source_kind NOT NULL,                          -- What it is.
  file_name text NOT NULL,                                        -- As it was called.
  media_type text NOT NULL,                                       -- As its content says.
  size_bytes bigint NOT NULL,                                     -- In bytes.
  sha256 text NOT NULL,                                           -- SHA-256 of the bytes, in hex.
  storage_key text NOT NULL,                                      -- Where the bytes lie in the object storage; never shown.
  department app.department,                                      -- The department it is about; null: the whole organization.
  provenance_urls jsonb NOT NULL DEFAULT '[]',                    -- Where it was found.
  title text,                                                     -- Its own title.
  excerpt text,                                                   -- Of a page: a few sentences, or that it has no text.
  page_text text,                                                 -- Of a page: the beginning of its main text, which is what is published of it.
  dedupe_key text,                                                -- What it was made of: made again it is the same source.
  error jsonb,                                                    -- Why it could not be used.
  created_at timestamptz NOT NULL DEFAULT now(),                  -- When it was made.
  CONSTRAINT context_sources_pkey PRIMARY KEY (organization_id, id),
  CONSTRAINT context_sources_dedupe_key_key UNIQUE (organization_id, dedupe_key),
  CONSTRAINT context_sources_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES app.organizations(id) ON DELETE
    CASCADE,
  CONSTRAINT context_sources_dedupe_key_check CHECK (((octet_length(dedupe_key) >= 1) AND (octet_length(dedupe_key) <=
    1000))),
  CONSTRAINT context_sources_error_when_failed_check CHECK (((status = 'failed') = (error IS NOT NULL))),
  CONSTRAINT context_sources_excerpt_check CHECK ((length(excerpt) <= 400)),
  CONSTRAINT context_sources_file_name_check CHECK (((length(file_name) >= 1) AND (length(file_name) <= 255))),
  CONSTRAINT context_sources_page_text_check CHECK ((length(page_text) <= 2000)),
  CONSTRAINT context_sources_provenance_urls_check CHECK ((jsonb_typeof(provenance_urls) = 'array')),
  CONSTRAINT context_sources_sha256_check CHECK ((sha256 ~ '^[0-9a-f]{64}$')),
  CONSTRAINT context_sources_size_bytes_check CHECK (((size_bytes >= 0) AND (size_bytes <= 52428800)))
);
-- Not sampled (SET STATISTICS 0): provenance_urls, excerpt, page_text, error
CREATE INDEX context_sources_created_at_idx ON app.context_sources USING btree (organization_id, created_at, id);
CREATE INDEX context_sources_status_idx ON app.context_sources USING btree (organization_id, status, created_at, id);
CREATE TRIGGER context_sources_keep BEFORE UPDATE ON app.context_sources FOR EACH ROW EXECUTE FUNCTION
  app.context_sources_keep();
ALTER TABLE app.context_sources ENABLE ROW LEVEL SECURITY;
ALTER TABLE app.context_sources FORCE ROW LEVEL SECURITY;
CREATE POLICY admin_read ON app.context_sources FOR SELECT TO runner_admin USING (((((SELECT app.current_organization())
  IS NULL) OR (organization_id = (SELECT app.current_organization()))) AND (organization_id <> ALL ((SELECT
  app.organizations_deleted())::uuid[]))));
CREATE POLICY owner_all ON app.context_sources TO runner_owner USING (true) WITH CHECK (true);
CREATE POLICY report_read ON app.context_sources FOR SELECT TO runner_report USING ((app.report_shows(organization_id,
  (SELECT (pg_has_role(SESSION_USER, 'runner_report'::name, 'member') OR (EXISTS (SELECT FROM app.analysts a WHERE
  ((a.login = SESSION_USER) AND (a.login_oid = ((to_regrole(quote_ident(SESSION_USER)))::oid)::bigint) AND
  a.all_organizations))))), ARRAY(SELECT g.organization_id FROM app.analyst_grants g WHERE ((g.login = SESSION_USER) AND
  (g.login_oid = ((to_regrole(quote_ident(SESSION_USER)))::oid)::bigint)))) AND (organization_id = ANY (ARRAY(SELECT
  o.id FROM app.organizations o)))));
CREATE POLICY scoped_all ON app.context_sources TO runner_scoped USING ((organization_id = (SELECT
  app.current_organization()))) WITH CHECK ((organization_id = (SELECT app.current_organization())));
CREATE POLICY tenant_read ON app.context_sources FOR SELECT TO runner_api, runner_jobs USING ((organization_id = (SELECT
  app.current_organization())));
GRANT SELECT (organization_id, id, origin, status, kind, file_name, media_type, size_bytes, sha256, department,
  provenance_urls, title, excerpt, page_text, error, created_at) ON app.context_sources TO runner_admin;
GRANT SELECT ON app.context_sources TO runner_api, runner_jobs;
GRANT SELECT (organization_id, origin, status) ON app.context_sources TO runner_report;
GRANT SELECT, INSERT, UPDATE, DELETE ON app.context_sources TO runner_scoped;

-- currency_rate_sources ───────────────────────────────────────────────────────────────────────────────────────────────
-- How far the reference rates are collected: one row.
CREATE TABLE app.currency_rate_sources (
  key text NOT NULL,                                              -- Always ecb.
  due_at timestamptz NOT NULL DEFAULT now(),                      -- When rates are looked for next.
  fence integer NOT NULL DEFAULT 0,                               -- Rises with each lease; what is stored for an older one is refused.
  lease_expires_at timestamptz,                                   -- Until when whoever looks has time; null: nobody looks.
  newest_day date,                                                -- The last day that has rates; null: none are there yet.
  history_loaded_at timestamptz,                                  -- When the whole history was last read to its end.
  looked_at timestamptz,                                          -- When rates were last looked for without a failure.
  failure_count integer NOT NULL DEFAULT 0,                       -- Failures in a row.
  error_code text,                                                -- Of the last failure; null after a success.
  CONSTRAINT currency_rate_sources_pkey PRIMARY KEY (key),
  CONSTRAINT currency_rate_sources_error_code_check CHECK ((error_code ~ '^[a-z_]{1,64}$')),
  CONSTRAINT currency_rate_sources_error_when_failing_check CHECK (((failure_count > 0) = (error_code IS NOT NULL))),
  CONSTRAINT currency_rate_sources_failure_count_check CHECK ((failure_count >= 0)),
  CONSTRAINT currency_rate_sources_fence_check CHECK ((fence >= 0)),
  CONSTRAINT currency_rate_sources_key_check CHECK ((key = 'ecb'))
);
GRANT SELECT (key, due_at, fence, lease_expires_at, newest_day, history_loaded_at, looked_at, failure_count, error_code)
  ON app.currency_rate_sources TO runner_admin;
GRANT SELECT, UPDATE ON app.currency_rate_sources TO runner_global;
GRANT SELECT ON app.currency_rate_sources TO runner_jobs;

-- currency_rates ──────────────────────────────────────────────────────────────────────────────────────────────────────
-- Euro foreign exchange reference rates of the European Central Bank, for all organizations. A day without a rate is a
-- gap.
CREATE TABLE app.currency_rates (
  currency text NOT NULL,                                         -- Three letters (ISO 4217).
  day date NOT NULL,                                              -- The day that the bank gives the rate for.
  rate numeric NOT NULL,                                          -- What one euro is worth in the currency, with the digits that the bank gives.
  CONSTRAINT currency_rates_pkey PRIMARY KEY (currency, day),
  CONSTRAINT currency_rates_currency_check CHECK ((currency ~ '^[A-Z]{3}$')),
  CONSTRAINT currency_rates_euro_is_one_check CHECK (((currency <> 'EUR') OR (rate = (1)::numeric))),
  CONSTRAINT currency_rates_rate_check CHECK (((rate > (0)::numeric) AND (rate < ('1000000000000'::bigint)::numeric)))
);
GRANT SELECT (currency, day, rate) ON app.currency_rates TO runner_admin;
GRANT SELECT ON app.currency_rates TO runner_api;
GRANT SELECT, INSERT, UPDATE ON app.currency_rates TO runner_global;

-- dispatch ────────────────────────────────────────────────────────────────────────────────────────────────────────────
-- Counters of what is held of an organization, by which pulls go.
CREATE TABLE app.dispatch (
  organization_id uuid NOT NULL,                                  -- The organization it belongs to.
  kind app.run_kind NOT NULL,                                     -- Tasks and chat turns have capacities of their own.
  capacity integer NOT NULL,                                      -- How many requests may be held at once.
  held integer NOT NULL DEFAULT 0,                                -- How many are leased or started.
  open_lanes integer NOT NULL DEFAULT 0,                          -- Profiles with something to take.
  stopped boolean NOT NULL DEFAULT false,                         -- Work dispatch is stopped by the owner or held by an onboarding: nothing new is published.
  suspended boolean NOT NULL DEFAULT false,                       -- Nothing is handed out.
  served_at timestamptz NOT NULL DEFAULT clock_timestamp(),       -- When it was last served: who waited longest comes first.
  open boolean NOT NULL GENERATED ALWAYS AS (((NOT suspended) AND (open_lanes > 0) AND (held < capacity))) STORED,  -- Whether a pull may take something.
  CONSTRAINT dispatch_pkey PRIMARY KEY (organization_id, kind),
  CONSTRAINT dispatch_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES app.organizations(id) ON DELETE
    CASCADE,
  CONSTRAINT dispatch_counters_check CHECK (((capacity >= 0) AND (held >= 0) AND (open_lanes >= 0)))
) WITH (fillfactor=50);
CREATE INDEX dispatch_served_at_idx ON app.dispatch USING btree (served_at, organization_id, kind) WHERE open;
CREATE TRIGGER dispatch_wake AFTER UPDATE OF capacity, suspended ON app.dispatch FOR EACH ROW WHEN ((new.open AND
  ((new.capacity > old.capacity) OR old.suspended))) EXECUTE FUNCTION app.dispatch_wake();
ALTER TABLE app.dispatch ENABLE ROW LEVEL SECURITY;
ALTER TABLE app.dispatch FORCE ROW LEVEL SECURITY;
CREATE POLICY admin_read ON app.dispatch FOR SELECT TO runner_admin USING (((((SELECT app.current_organization()) IS
  NULL) OR (organization_id = (SELECT app.current_organization()))) AND (organization_id <> ALL ((SELECT
  app.organizations_deleted())::uuid[]))));
CREATE POLICY global_all ON app.dispatch TO runner_global USING (true) WITH CHECK (true);
CREATE POLICY owner_all ON app.dispatch TO runner_owner USING (true) WITH CHECK (true);
CREATE POLICY scoped_all ON app.dispatch TO runner_scoped USING ((organization_id = (SELECT
  app.current_organization()))) WITH CHECK ((organization_id = (SELECT app.current_organization())));
CREATE POLICY tenant_read ON app.dispatch FOR SELECT TO runner_api, runner_jobs USING ((organization_id = (SELECT
  app.current_organization())));
GRANT SELECT (organization_id, kind, capacity, held, open_lanes, stopped, suspended, served_at, open) ON app.dispatch TO
  runner_admin;
GRANT SELECT ON app.dispatch TO runner_api, runner_jobs;
GRANT SELECT, UPDATE ON app.dispatch TO runner_global;
GRANT SELECT, INSERT, UPDATE, DELETE ON app.dispatch TO runner_scoped;

-- dispatch_lanes ──────────────────────────────────────────────────────────────────────────────────────────────────────
-- The same counters for each profile.
CREATE TABLE app.dispatch_lanes (
  organization_id uuid NOT NULL,                                  -- The organization it belongs to.
  agent_profile_id uuid NOT NULL,                                 -- The profile.
  kind app.run_kind NOT NULL,                                     -- Tasks or chat turns.
  capacity integer NOT NULL,                                      -- How many requests of it may be held at once.
  ready integer NOT NULL DEFAULT 0,                               -- How many are published.
  held integer NOT NULL DEFAULT 0,                                -- How many are leased or started.
  open boolean NOT NULL GENERATED ALWAYS AS (((ready > 0) AND (held < capacity))) STORED,  -- Whether a pull may take something.
  CONSTRAINT dispatch_lanes_pkey PRIMARY KEY (organization_id, kind, agent_profile_id),
  CONSTRAINT dispatch_lanes_agent_profile_id_fkey FOREIGN KEY (organization_id, agent_profile_id) REFERENCES
    app.agent_profiles(organization_id, id) ON DELETE CASCADE,
  CONSTRAINT dispatch_lanes_counters_check CHECK (((capacity >= 0) AND (ready >= 0) AND (held >= 0)))
) WITH (fillfactor=50);
CREATE INDEX dispatch_lanes_agent_profile_id_idx ON app.dispatch_lanes USING btree (organization_id, agent_profile_id);
CREATE TRIGGER dispatch_lanes_wake AFTER UPDATE OF capacity ON app.dispatch_lanes FOR EACH ROW WHEN ((new.open AND
  (new.capacity > old.capacity))) EXECUTE FUNCTION app.dispatch_wake();
ALTER TABLE app.dispatch_lanes ENABLE ROW LEVEL SECURITY;
ALTER TABLE app.dispatch_lanes FORCE ROW LEVEL SECURITY;
CREATE POLICY admin_read ON app.dispatch_lanes FOR SELECT TO runner_admin USING (((((SELECT app.current_organization())
  IS NULL) OR (organization_id = (SELECT app.current_organization()))) AND (organization_id <> ALL ((SELECT
  app.organizations_deleted())::uuid[]))));
CREATE POLICY global_all ON app.dispatch_lanes TO runner_global USING (true) WITH CHECK (true);
CREATE POLICY owner_all ON app.dispatch_lanes TO runner_owner USING (true) WITH CHECK (true);
CREATE POLICY scoped_all ON app.dispatch_lanes TO runner_scoped USING ((organization_id = (SELECT
  app.current_organization()))) WITH CHECK ((organization_id = (SELECT app.current_organization())));
CREATE POLICY tenant_read ON app.dispatch_lanes FOR SELECT TO runner_api, runner_jobs USING ((organization_id = (SELECT
  app.current_organization())));
GRANT SELECT (organization_id, agent_profile_id, kind, capacity, ready, held, open) ON app.dispatch_lanes TO
  runner_admin;
GRANT SELECT ON app.dispatch_lanes TO runner_api, runner_jobs;
GRANT SELECT, UPDATE ON app.dispatch_lanes TO runner_global;
GRANT SELECT, INSERT, UPDATE, DELETE ON app.dispatch_lanes TO runner_scoped;

-- human_inbox_items ───────────────────────────────────────────────────────────────────────────────────────────────────
-- What people are asked and told.
CREATE TABLE app.human_inbox_items (
  organization_id uuid NOT NULL,                                  -- The organization it belongs to.
  id uuid NOT NULL DEFAULT app.uuid_v7(),                         -- Id of the item.
  task_id uuid,                                                   -- The task it is about.
  run_id uuid,                                                    -- The run that asks.
  action_id uuid,                                                 -- The action it is about.
  chat_id uuid,                                                   -- The chat it is about.
  schedule_id uuid,                                               -- The schedule it is about.
  kind app.human_inbox_item_kind NOT NULL,                        -- Questions are responded to, notifications acknowledged, approvals and reconciliations decided at their action.
  status app.human_inbox_item_status NOT NULL DEFAULT 'open',     -- cancelled: what it was about ended.
  purpose app.human_inbox_item_purpose NOT NULL,                  -- What an answer does.
  blocking boolean NOT NULL DEFAULT false,                        -- The task waits for the answer.
  title text NOT NULL,                                            -- In short.
  body text NOT NULL DEFAULT '',                                  -- The whole of it.
  options jsonb NOT NULL DEFAULT '[]',                            -- Answers to choose from.
  allow_free_text boolean NOT NULL DEFAULT true,                  -- Whether an answer may be something else than an option.
  response text,                                                  -- What was answered.
  note text,                                                      -- What a person wrote besides the option.
  responded_at timestamptz,                                       -- When it was handled.
  created_at timestamptz NOT NULL DEFAULT now(),                  -- When it was made.
  updated_at timestamptz NOT NULL DEFAULT now(),                  -- When it was last changed.
  CONSTRAINT human_inbox_items_pkey PRIMARY KEY (organization_id, id),
  CONSTRAINT human_inbox_items_task_id_fkey FOREIGN KEY (organization_id, task_id) REFERENCES app.tasks(organization_id,
    id) ON DELETE CASCADE,
  CONSTRAINT human_inbox_items_action_when_decided_there_check CHECK ((((action_id IS NOT NULL) = kind IN ('approval',
    'reconciliation')) AND (purpose IN ('approval', 'reconciliation') = kind IN ('approval', 'reconciliation')) AND
    ((action_id IS NULL) OR (purpose = kind)))),
  CONSTRAINT human_inbox_items_blocking_question_check CHECK (((NOT blocking) OR (kind = 'question'))),
  CONSTRAINT human_inbox_items_note_when_responded_check CHECK (((note IS NULL) OR (status = 'responded'))),
  CONSTRAINT human_inbox_items_options_check CHECK ((jsonb_typeof(options) = 'array')),
  CONSTRAINT human_inbox_items_responded_at_when_handled_check CHECK ((status IN ('responded', 'acknowledged') =
    (responded_at IS NOT NULL))),
  CONSTRAINT human_inbox_items_responded_check CHECK (((status = 'responded') = (response IS NOT NULL))),
  CONSTRAINT human_inbox_items_schedule_when_schedule_check CHECK (((purpose = 'schedule') = (schedule_id IS NOT NULL))),
  CONSTRAINT human_inbox_items_title_check CHECK (((length(title) >= 1) AND (length(title) <= 500)))
);
-- Not sampled (SET STATISTICS 0): options
CREATE UNIQUE INDEX human_inbox_items_action_id_idx ON app.human_inbox_items USING btree (organization_id, action_id)
  WHERE ((status = 'open') AND (action_id IS NOT NULL));
CREATE INDEX human_inbox_items_all_created_at_idx ON app.human_inbox_items USING btree (created_at, id);
CREATE INDEX human_inbox_items_created_at_idx ON app.human_inbox_items USING btree (organization_id, created_at, id);
CREATE INDEX human_inbox_items_open_idx ON app.human_inbox_items USING btree (kind) WHERE (status = 'open');
CREATE UNIQUE INDEX human_inbox_items_open_purpose_idx ON app.human_inbox_items USING btree (organization_id, task_id,
  purpose) WHERE ((status = 'open') AND purpose IN ('repair', 'budget', 'prerequisite', 'failure'));
CREATE UNIQUE INDEX human_inbox_items_schedule_id_idx ON app.human_inbox_items USING btree (organization_id,
  schedule_id) WHERE ((status = 'open') AND (schedule_id IS NOT NULL));
CREATE INDEX human_inbox_items_status_idx ON app.human_inbox_items USING btree (organization_id, status, created_at,
  id);
CREATE INDEX human_inbox_items_task_id_idx ON app.human_inbox_items USING btree (organization_id, task_id) WHERE
  (task_id IS NOT NULL);
CREATE TRIGGER human_inbox_items_mark_run AFTER INSERT ON app.human_inbox_items FOR EACH ROW WHEN ((new.blocking AND
  (new.purpose = 'agent') AND (new.task_id IS NOT NULL))) EXECUTE FUNCTION app.human_inbox_items_mark_run();
ALTER TABLE app.human_inbox_items ENABLE ROW LEVEL SECURITY;
ALTER TABLE app.human_inbox_items FORCE ROW LEVEL SECURITY;
CREATE POLICY admin_read ON app.human_inbox_items FOR SELECT TO runner_admin USING (((((SELECT
  app.current_organization()) IS NULL) OR (organization_id = (SELECT app.current_organization()))) AND (organization_id
  <> ALL ((SELECT app.organizations_deleted())::uuid[]))));
CREATE POLICY global_read ON app.human_inbox_items FOR SELECT TO runner_global USING (true);
CREATE POLICY owner_all ON app.human_inbox_items TO runner_owner USING (true) WITH CHECK (true);
CREATE POLICY report_read ON app.human_inbox_items FOR SELECT TO runner_report USING ((app.report_shows(organization_id,
  (SELECT (pg_has_role(SESSION_USER, 'runner_report'::name, 'member') OR (EXISTS (SELECT FROM app.analysts a WHERE
  ((a.login = SESSION_USER) AND (a.login_oid = ((to_regrole(quote_ident(SESSION_USER)))::oid)::bigint) AND
  a.all_organizations))))), ARRAY(SELECT g.organization_id FROM app.analyst_grants g WHERE ((g.login = SESSION_USER) AND
  (g.login_oid = ((to_regrole(quote_ident(SESSION_USER)))::oid)::bigint)))) AND (organization_id = ANY (ARRAY(SELECT
  o.id FROM app.organizations o)))));
CREATE POLICY scoped_all ON app.human_inbox_items TO runner_scoped USING ((organization_id = (SELECT
  app.current_organization()))) WITH CHECK ((organization_id = (SELECT app.current_organization())));
CREATE POLICY tenant_read ON app.human_inbox_items FOR SELECT TO runner_api USING ((organization_id = (SELECT
  app.current_organization())));
GRANT SELECT (organization_id, id, task_id, run_id, action_id, chat_id, schedule_id, kind, status, purpose, blocking,
  title, body, options, allow_free_text, response, note, responded_at, created_at, updated_at) ON app.human_inbox_items
  TO runner_admin;
GRANT SELECT ON app.human_inbox_items TO runner_api;
GRANT SELECT (organization_id, kind, status) ON app.human_inbox_items TO runner_global;
GRANT SELECT (organization_id, id, task_id, run_id, chat_id, schedule_id, kind, status, purpose, blocking, responded_at,
  created_at, updated_at) ON app.human_inbox_items TO runner_report;
GRANT SELECT, INSERT, UPDATE, DELETE ON app.human_inbox_items TO runner_scoped;

-- idempotency_keys ────────────────────────────────────────────────────────────────────────────────────────────────────
-- First responses of calls that carried an Idempotency-Key, kept for a day.
CREATE TABLE app.idempotency_keys (
  organization_id uuid NOT NULL,                                  -- The organization that was called about.
  caller text NOT NULL,                                           -- operator, owner:<subject>, or a digest of the capability.
  method text NOT NULL,                                           -- Method of the call.
  path text NOT NULL,                                             -- Path of the call.
  key text NOT NULL,                                              -- Chosen by the caller.
  body_hash text NOT NULL,                                        -- Digest of the body: another body with the same key is refused.
  status_code integer,                                            -- Status of the first response; null while the call is in progress.
  response jsonb,                                                 -- The first response; never shown.
  claim_id uuid,                                                  -- The call in progress that does more than change the database; null for others.
  claimed_until timestamptz,                                      -- When another call may take the key over.
  created_at timestamptz NOT NULL DEFAULT now(),                  -- When it was made.
  CONSTRAINT idempotency_keys_pkey PRIMARY KEY (organization_id, caller, method, path, key),
  CONSTRAINT idempotency_keys_claim_check CHECK ((((claim_id IS NULL) = (claimed_until IS NULL)) AND ((claim_id IS NULL)
    OR (status_code IS NULL)))),
  CONSTRAINT idempotency_keys_key_check CHECK (((length(key) >= 1) AND (length(key) <= 200))),
  CONSTRAINT idempotency_keys_response_check CHECK (((status_code IS NULL) = (response IS NULL)))
);
-- Not sampled (SET STATISTICS 0): response
CREATE INDEX idempotency_keys_created_at_idx ON app.idempotency_keys USING btree (organization_id, created_at);
ALTER TABLE app.idempotency_keys ENABLE ROW LEVEL SECURITY;
ALTER TABLE app.idempotency_keys FORCE ROW LEVEL SECURITY;
CREATE POLICY global_all ON app.idempotency_keys TO runner_global USING (true) WITH CHECK (true);
CREATE POLICY owner_all ON app.idempotency_keys TO runner_owner USING (true) WITH CHECK (true);
CREATE POLICY scoped_all ON app.idempotency_keys TO runner_scoped USING ((organization_id = (SELECT
  app.current_organization()))) WITH CHECK ((organization_id = (SELECT app.current_organization())));
GRANT SELECT, UPDATE, DELETE ON app.idempotency_keys TO runner_global;
GRANT SELECT, INSERT, UPDATE, DELETE ON app.idempotency_keys TO runner_scoped;

-- insight_compactions ─────────────────────────────────────────────────────────────────────────────────────────────────
-- Months of sources whose files are merged: who does it, and what became of it.
CREATE TABLE app.insight_compactions (
  organization_id uuid NOT NULL,                                  -- The organization it belongs to.
  source_id uuid NOT NULL,                                        -- The source.
  month text NOT NULL,                                            -- The month of its files.
  compaction_id uuid,                                             -- The newest claim, by which its file is named; null: there was none.
  fence bigint NOT NULL DEFAULT 0,                                -- The number of that claim.
  lease_expires_at timestamptz,                                   -- When its lease ends; null: it has ended.
  segments jsonb NOT NULL DEFAULT '[]',                           -- The ids of what it merges; empty once it has ended.
  is_whole boolean NOT NULL DEFAULT false,                        -- Those are all files of the month.
  revision bigint,                                                -- What the newest claim published; null: nothing.
  due_at timestamptz,                                             -- Not before then; null: at any time.
  failure_count integer NOT NULL DEFAULT 0,                       -- Failures in a row.
  last_error jsonb,                                               -- {code, message, at} of the last one; null: it works.
  compacted_at timestamptz,                                       -- When files were last merged.
  CONSTRAINT insight_compactions_pkey PRIMARY KEY (organization_id, source_id, month),
  CONSTRAINT insight_compactions_source_id_fkey FOREIGN KEY (organization_id, source_id) REFERENCES
    app.insight_sources(organization_id, id) ON DELETE CASCADE,
  CONSTRAINT insight_compactions_claimed_check CHECK (((lease_expires_at IS NULL) OR (compaction_id IS NOT NULL))),
  CONSTRAINT insight_compactions_failure_count_check CHECK ((failure_count >= 0)),
  CONSTRAINT insight_compactions_fence_check CHECK ((fence >= 0)),
  CONSTRAINT insight_compactions_lease_check CHECK (((lease_expires_at IS NULL) = (segments = '[]'))),
  CONSTRAINT insight_compactions_month_check CHECK ((month ~ '^\d{4}-(0[1-9]|1[0-2])$')),
  CONSTRAINT insight_compactions_segments_check CHECK ((jsonb_typeof(segments) = 'array'))
);
-- Not sampled (SET STATISTICS 0): segments, last_error
ALTER TABLE app.insight_compactions ENABLE ROW LEVEL SECURITY;
ALTER TABLE app.insight_compactions FORCE ROW LEVEL SECURITY;
CREATE POLICY admin_read ON app.insight_compactions FOR SELECT TO runner_admin USING (((((SELECT
  app.current_organization()) IS NULL) OR (organization_id = (SELECT app.current_organization()))) AND (organization_id
  <> ALL ((SELECT app.organizations_deleted())::uuid[]))));
CREATE POLICY global_read ON app.insight_compactions FOR SELECT TO runner_global USING (true);
CREATE POLICY owner_all ON app.insight_compactions TO runner_owner USING (true) WITH CHECK (true);
CREATE POLICY scoped_all ON app.insight_compactions TO runner_scoped USING ((organization_id = (SELECT
  app.current_organization()))) WITH CHECK ((organization_id = (SELECT app.current_organization())));
CREATE POLICY tenant_read ON app.insight_compactions FOR SELECT TO runner_api, runner_jobs USING ((organization_id =
  (SELECT app.current_organization())));
GRANT SELECT (organization_id, source_id, month, lease_expires_at, is_whole, revision, due_at, failure_count,
  last_error, compacted_at) ON app.insight_compactions TO runner_admin;
GRANT SELECT ON app.insight_compactions TO runner_api, runner_jobs;
GRANT SELECT (organization_id, source_id, month, lease_expires_at, due_at) ON app.insight_compactions TO runner_global;
GRANT SELECT, INSERT, UPDATE, DELETE ON app.insight_compactions TO runner_scoped;

-- insight_connectors ──────────────────────────────────────────────────────────────────────────────────────────────────
-- How the facts of an integration are collected: when it is looked at next, and who does it now.
CREATE TABLE app.insight_connectors (
  organization_id uuid NOT NULL,                                  -- The organization it belongs to.
  integration_id uuid NOT NULL,                                   -- The integration.
  due_at timestamptz,                                             -- When it is looked at next; while it is leased, when another one may. Null: there is nothing to do.
  discovery_due_at timestamptz,                                   -- When its provider is asked for sources; null: it was, and nothing has changed.
  discovered_at timestamptz,                                      -- When it was last asked for them.
  discovered_revision integer,                                    -- The connection revision of then.
  discovered_scope text,                                          -- SHA-256, in hex, of the settings of then.
  failure_count integer NOT NULL DEFAULT 0,                       -- Failures in a row, of whatever was collected.
  last_error jsonb,                                               -- {code, message} of the last one; null: it works.
  retry_not_before timestamptz,                                   -- Before then its provider is not asked.
  fence bigint NOT NULL DEFAULT 0,                                -- The number of its last claim.
  unit_id uuid,                                                   -- The unit that is under way.
  lease_expires_at timestamptz,                                   -- When its lease ends.
  CONSTRAINT insight_connectors_pkey PRIMARY KEY (organization_id, integration_id),
  CONSTRAINT insight_connectors_integration_id_fkey FOREIGN KEY (organization_id, integration_id) REFERENCES
    app.integrations(organization_id, id) ON DELETE CASCADE,
  CONSTRAINT insight_connectors_discovered_check CHECK ((((discovered_at IS NULL) = (discovered_revision IS NULL)) AND
    ((discovered_at IS NULL) = (discovered_scope IS NULL)))),
  CONSTRAINT insight_connectors_failure_count_check CHECK ((failure_count >= 0)),
  CONSTRAINT insight_connectors_fence_check CHECK ((fence >= 0)),
  CONSTRAINT insight_connectors_lease_check CHECK (((unit_id IS NULL) = (lease_expires_at IS NULL)))
);
-- Not sampled (SET STATISTICS 0): discovered_scope, last_error
CREATE INDEX insight_connectors_all_due_at_idx ON app.insight_connectors USING btree (due_at) WHERE (due_at IS NOT
  NULL);
CREATE INDEX insight_connectors_due_at_idx ON app.insight_connectors USING btree (organization_id, due_at,
  integration_id) WHERE (due_at IS NOT NULL);
ALTER TABLE app.insight_connectors ENABLE ROW LEVEL SECURITY;
ALTER TABLE app.insight_connectors FORCE ROW LEVEL SECURITY;
CREATE POLICY admin_read ON app.insight_connectors FOR SELECT TO runner_admin USING (((((SELECT
  app.current_organization()) IS NULL) OR (organization_id = (SELECT app.current_organization()))) AND (organization_id
  <> ALL ((SELECT app.organizations_deleted())::uuid[]))));
CREATE POLICY global_read ON app.insight_connectors FOR SELECT TO runner_global USING (true);
CREATE POLICY owner_all ON app.insight_connectors TO runner_owner USING (true) WITH CHECK (true);
CREATE POLICY scoped_all ON app.insight_connectors TO runner_scoped USING ((organization_id = (SELECT
  app.current_organization()))) WITH CHECK ((organization_id = (SELECT app.current_organization())));
CREATE POLICY tenant_read ON app.insight_connectors FOR SELECT TO runner_api, runner_jobs USING ((organization_id =
  (SELECT app.current_organization())));
GRANT SELECT (organization_id, integration_id, due_at, discovery_due_at, discovered_at, discovered_revision,
  failure_count, last_error, retry_not_before, lease_expires_at) ON app.insight_connectors TO runner_admin;
GRANT SELECT ON app.insight_connectors TO runner_api, runner_jobs;
GRANT SELECT (organization_id, integration_id, due_at, failure_count) ON app.insight_connectors TO runner_global;
GRANT SELECT, INSERT, UPDATE, DELETE ON app.insight_connectors TO runner_scoped;

-- insight_cursors ─────────────────────────────────────────────────────────────────────────────────────────────────────
-- How far a source is collected, in each of its modes.
CREATE TABLE app.insight_cursors (
  organization_id uuid NOT NULL,                                  -- The organization it belongs to.
  source_id uuid NOT NULL,                                        -- The source.
  mode app.insight_cursor_mode NOT NULL,                          -- tail: what is new. backfill: the past. rescan: all of it.
  cursor jsonb,                                                   -- Where it goes on, in the terms of its provider; null: from the beginning.
  round jsonb,                                                    -- What is kept until the round is done; null: nothing.
  due_at timestamptz,                                             -- When it goes on; null: it is done, or waits for another mode.
  claimed_at timestamptz,                                         -- When it last went on.
  completed_at timestamptz,                                       -- When a round was last done.
  failure_count integer NOT NULL DEFAULT 0,                       -- Failures in a row.
  CONSTRAINT insight_cursors_pkey PRIMARY KEY (organization_id, source_id, mode),
  CONSTRAINT insight_cursors_source_id_fkey FOREIGN KEY (organization_id, source_id) REFERENCES
    app.insight_sources(organization_id, id) ON DELETE CASCADE,
  CONSTRAINT insight_cursors_cursor_check CHECK ((octet_length(cursor) <= 16384)),
  CONSTRAINT insight_cursors_failure_count_check CHECK ((failure_count >= 0)),
  CONSTRAINT insight_cursors_round_check CHECK ((octet_length(round) <= 65536))
);
-- Not sampled (SET STATISTICS 0): cursor, round
ALTER TABLE app.insight_cursors ENABLE ROW LEVEL SECURITY;
ALTER TABLE app.insight_cursors FORCE ROW LEVEL SECURITY;
CREATE POLICY admin_read ON app.insight_cursors FOR SELECT TO runner_admin USING (((((SELECT app.current_organization())
  IS NULL) OR (organization_id = (SELECT app.current_organization()))) AND (organization_id <> ALL ((SELECT
  app.organizations_deleted())::uuid[]))));
CREATE POLICY owner_all ON app.insight_cursors TO runner_owner USING (true) WITH CHECK (true);
CREATE POLICY report_read ON app.insight_cursors FOR SELECT TO runner_report USING ((app.report_shows(organization_id,
  (SELECT (pg_has_role(SESSION_USER, 'runner_report'::name, 'member') OR (EXISTS (SELECT FROM app.analysts a WHERE
  ((a.login = SESSION_USER) AND (a.login_oid = ((to_regrole(quote_ident(SESSION_USER)))::oid)::bigint) AND
  a.all_organizations))))), ARRAY(SELECT g.organization_id FROM app.analyst_grants g WHERE ((g.login = SESSION_USER) AND
  (g.login_oid = ((to_regrole(quote_ident(SESSION_USER)))::oid)::bigint)))) AND (organization_id = ANY (ARRAY(SELECT
  o.id FROM app.organizations o)))));
CREATE POLICY scoped_all ON app.insight_cursors TO runner_scoped USING ((organization_id = (SELECT
  app.current_organization()))) WITH CHECK ((organization_id = (SELECT app.current_organization())));
CREATE POLICY tenant_read ON app.insight_cursors FOR SELECT TO runner_api, runner_jobs USING ((organization_id = (SELECT
  app.current_organization())));
GRANT SELECT (organization_id, source_id, mode, due_at, claimed_at, completed_at, failure_count) ON app.insight_cursors
  TO runner_admin;
GRANT SELECT ON app.insight_cursors TO runner_api, runner_jobs;
GRANT SELECT (organization_id, source_id, due_at) ON app.insight_cursors TO runner_report;
GRANT SELECT, INSERT, UPDATE, DELETE ON app.insight_cursors TO runner_scoped;

-- insight_heads ───────────────────────────────────────────────────────────────────────────────────────────────────────
-- The newest publication of an organization. Locked last, so that a revision is never seen before the one below it.
CREATE TABLE app.insight_heads (
  organization_id uuid NOT NULL,                                  -- The organization it belongs to.
  revision bigint NOT NULL DEFAULT 0,                             -- Rises by one with each publication; a query reads at one of them.
  updated_at timestamptz NOT NULL DEFAULT now(),                  -- When that was.
  sweep_at timestamptz NOT NULL DEFAULT (now() + '1 day'::interval),  -- When files that no row names are looked for.
  CONSTRAINT insight_heads_pkey PRIMARY KEY (organization_id),
  CONSTRAINT insight_heads_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES app.organizations(id) ON DELETE
    CASCADE,
  CONSTRAINT insight_heads_revision_check CHECK ((revision >= 0))
);
CREATE INDEX insight_heads_sweep_at_idx ON app.insight_heads USING btree (organization_id, sweep_at);
ALTER TABLE app.insight_heads ENABLE ROW LEVEL SECURITY;
ALTER TABLE app.insight_heads FORCE ROW LEVEL SECURITY;
CREATE POLICY admin_read ON app.insight_heads FOR SELECT TO runner_admin USING (((((SELECT app.current_organization())
  IS NULL) OR (organization_id = (SELECT app.current_organization()))) AND (organization_id <> ALL ((SELECT
  app.organizations_deleted())::uuid[]))));
CREATE POLICY global_read ON app.insight_heads FOR SELECT TO runner_global USING (true);
CREATE POLICY owner_all ON app.insight_heads TO runner_owner USING (true) WITH CHECK (true);
CREATE POLICY scoped_all ON app.insight_heads TO runner_scoped USING ((organization_id = (SELECT
  app.current_organization()))) WITH CHECK ((organization_id = (SELECT app.current_organization())));
CREATE POLICY tenant_read ON app.insight_heads FOR SELECT TO runner_api, runner_jobs USING ((organization_id = (SELECT
  app.current_organization())));
GRANT SELECT (organization_id, revision, updated_at, sweep_at) ON app.insight_heads TO runner_admin;
GRANT SELECT ON app.insight_heads TO runner_api, runner_jobs;
GRANT SELECT (organization_id, revision, sweep_at) ON app.insight_heads TO runner_global;
GRANT SELECT, INSERT, UPDATE, DELETE ON app.insight_heads TO runner_scoped;

-- insight_pseudonym_keys ──────────────────────────────────────────────────────────────────────────────────────────────
-- What the pseudonyms of customers are made with: another key in each organization. It is wrapped anew, and never
-- changes.
CREATE TABLE app.insight_pseudonym_keys (
  organization_id uuid NOT NULL,                                  -- The organization it belongs to.
  key_id text NOT NULL,                                           -- The key that its data key is wrapped by.
  wrapped_key bytea NOT NULL,                                     -- Its data key, wrapped; never shown.
  ciphertext bytea NOT NULL,                                      -- What it protects; never shown.
  created_at timestamptz NOT NULL DEFAULT now(),                  -- When it was made.
  CONSTRAINT insight_pseudonym_keys_pkey PRIMARY KEY (organization_id),
  CONSTRAINT insight_pseudonym_keys_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES app.organizations(id) ON
    DELETE CASCADE,
  CONSTRAINT insight_pseudonym_keys_ciphertext_check CHECK (((octet_length(ciphertext) >= 1) AND (octet_length(ciphertext)
    <= 1024))),
  CONSTRAINT insight_pseudonym_keys_key_id_check CHECK (((length(key_id) >= 1) AND (length(key_id) <= 63))),
  CONSTRAINT insight_pseudonym_keys_wrapped_key_check CHECK (((octet_length(wrapped_key) >= 1) AND
    (octet_length(wrapped_key) <= 256)))
);
-- Not sampled (SET STATISTICS 0): wrapped_key, ciphertext
CREATE INDEX insight_pseudonym_keys_key_id_idx ON app.insight_pseudonym_keys USING btree (key_id, organization_id);
ALTER TABLE app.insight_pseudonym_keys ENABLE ROW LEVEL SECURITY;
ALTER TABLE app.insight_pseudonym_keys FORCE ROW LEVEL SECURITY;
CREATE POLICY global_read ON app.insight_pseudonym_keys FOR SELECT TO runner_global USING (true);
CREATE POLICY owner_all ON app.insight_pseudonym_keys TO runner_owner USING (true) WITH CHECK (true);
CREATE POLICY scoped_all ON app.insight_pseudonym_keys TO runner_scoped USING ((organization_id = (SELECT
  app.current_organization()))) WITH CHECK ((organization_id = (SELECT app.current_organization())));
GRANT SELECT (organization_id, key_id, wrapped_key) ON app.insight_pseudonym_keys TO runner_global;
GRANT SELECT, INSERT, UPDATE, DELETE ON app.insight_pseudonym_keys TO runner_scoped;

-- insight_publications ────────────────────────────────────────────────────────────────────────────────────────────────
-- What each revision brought. Revision N sees what was published at or before N and not retired at or before N.
CREATE TABLE app.insight_publications (
  organization_id uuid NOT NULL,                                  -- The organization it belongs to.
  revision bigint NOT NULL,                                       -- Its number in the organization.
  source_id uuid NOT NULL,                                        -- The source that it is of.
  unit_id uuid,                                                   -- The unit that published; null: a compaction.
  added integer NOT NULL,                                         -- Segments that it added.
  retired integer NOT NULL,                                       -- Segments that it retired.
  published_at timestamptz NOT NULL DEFAULT now(),                -- When it was made.
  CONSTRAINT insight_publications_pkey PRIMARY KEY (organization_id, revision),
  CONSTRAINT insight_publications_source_id_fkey FOREIGN KEY (organization_id, source_id) REFERENCES
    app.insight_sources(organization_id, id) ON DELETE CASCADE,
  CONSTRAINT insight_publications_counts_check CHECK (((added >= 0) AND (retired >= 0) AND ((added + retired) >= 1))),
  CONSTRAINT insight_publications_revision_check CHECK ((revision >= 1))
);
CREATE INDEX insight_publications_source_id_idx ON app.insight_publications USING btree (organization_id, source_id);
ALTER TABLE app.insight_publications ENABLE ROW LEVEL SECURITY;
ALTER TABLE app.insight_publications FORCE ROW LEVEL SECURITY;
CREATE POLICY admin_read ON app.insight_publications FOR SELECT TO runner_admin USING (((((SELECT
  app.current_organization()) IS NULL) OR (organization_id = (SELECT app.current_organization()))) AND (organization_id
  <> ALL ((SELECT app.organizations_deleted())::uuid[]))));
CREATE POLICY owner_all ON app.insight_publications TO runner_owner USING (true) WITH CHECK (true);
CREATE POLICY scoped_all ON app.insight_publications TO runner_scoped USING ((organization_id = (SELECT
  app.current_organization()))) WITH CHECK ((organization_id = (SELECT app.current_organization())));
CREATE POLICY tenant_read ON app.insight_publications FOR SELECT TO runner_api, runner_jobs USING ((organization_id =
  (SELECT app.current_organization())));
GRANT SELECT (organization_id, revision, source_id, unit_id, added, retired, published_at) ON app.insight_publications
  TO runner_admin;
GRANT SELECT ON app.insight_publications TO runner_api, runner_jobs;
GRANT SELECT, INSERT, UPDATE, DELETE ON app.insight_publications TO runner_scoped;

-- insight_segments ────────────────────────────────────────────────────────────────────────────────────────────────────
-- Files that hold facts of a source and a month. None is ever changed.
CREATE TABLE app.insight_segments (
  organization_id uuid NOT NULL,                                  -- The organization it belongs to.
  id uuid NOT NULL DEFAULT app.uuid_v7(),                         -- Id of the segment.
  source_id uuid NOT NULL,                                        -- The source.
  month text NOT NULL,                                            -- The month, in UTC, in which its facts lie: YYYY-MM.
  object_key text NOT NULL,                                       -- Where it lies in the object storage; never shown.
  unit_id uuid NOT NULL,                                          -- The unit, or the compaction, that wrote it.
  row_count integer NOT NULL,                                     -- Facts in it.
  size_bytes bigint NOT NULL,                                     -- Its size.
  sha256 text NOT NULL,                                           -- SHA-256 of its bytes, in hex.
  min_at timestamptz NOT NULL,                                    -- The earliest time of its facts.
  max_at timestamptz NOT NULL,                                    -- The latest one.
  distinct_keys boolean NOT NULL DEFAULT false,                   -- It holds each key of its partition once.
  schema_version integer NOT NULL,                                -- What its facts look like.
  staged boolean NOT NULL DEFAULT false,                          -- It waits for the rest of its snapshot or scan.
  published_revision bigint,                                      -- The publication since which it is read; null: none yet.
  retired_revision bigint,                                        -- The publication since which it is not read any more.
  retired_at timestamptz,                                         -- When that was, or when it was dropped.
  created_at timestamptz NOT NULL DEFAULT now(),                  -- When it was stored.
  CONSTRAINT insight_segments_pkey PRIMARY KEY (organization_id, id),
  CONSTRAINT insight_segments_object_key_key UNIQUE (organization_id, object_key),
  CONSTRAINT insight_segments_source_id_fkey FOREIGN KEY (organization_id, source_id) REFERENCES
    app.insight_sources(organization_id, id) ON DELETE CASCADE,
  CONSTRAINT insight_segments_month_check CHECK ((month ~ '^\d{4}-(0[1-9]|1[0-2])$')),
  CONSTRAINT insight_segments_retired_check CHECK (((retired_revision IS NULL) OR (retired_at IS NOT NULL))),
  CONSTRAINT insight_segments_retired_later_check CHECK ((retired_revision > published_revision)),
  CONSTRAINT insight_segments_row_count_check CHECK ((row_count >= 1)),
  CONSTRAINT insight_segments_sha256_check CHECK ((sha256 ~ '^[0-9a-f]{64}$')),
  CONSTRAINT insight_segments_size_bytes_check CHECK ((size_bytes >= 1)),
  CONSTRAINT insight_segments_staged_check CHECK ((staged = ((published_revision IS NULL) AND (retired_at IS NULL))))
);
-- Not sampled (SET STATISTICS 0): object_key, sha256
CREATE INDEX insight_segments_live_idx ON app.insight_segments USING btree (organization_id, source_id, month) WHERE
  ((NOT staged) AND (retired_at IS NULL));
CREATE INDEX insight_segments_retired_at_idx ON app.insight_segments USING btree (retired_at) WHERE (retired_at IS NOT
  NULL);
CREATE INDEX insight_segments_retired_at_turns_idx ON app.insight_segments USING btree (organization_id, retired_at)
  WHERE (retired_at IS NOT NULL);
CREATE INDEX insight_segments_source_id_idx ON app.insight_segments USING btree (organization_id, source_id, month);
ALTER TABLE app.insight_segments ENABLE ROW LEVEL SECURITY;
ALTER TABLE app.insight_segments FORCE ROW LEVEL SECURITY;
CREATE POLICY admin_read ON app.insight_segments FOR SELECT TO runner_admin USING (((((SELECT
  app.current_organization()) IS NULL) OR (organization_id = (SELECT app.current_organization()))) AND (organization_id
  <> ALL ((SELECT app.organizations_deleted())::uuid[]))));
CREATE POLICY global_read ON app.insight_segments FOR SELECT TO runner_global USING (true);
CREATE POLICY owner_all ON app.insight_segments TO runner_owner USING (true) WITH CHECK (true);
CREATE POLICY scoped_all ON app.insight_segments TO runner_scoped USING ((organization_id = (SELECT
  app.current_organization()))) WITH CHECK ((organization_id = (SELECT app.current_organization())));
CREATE POLICY tenant_read ON app.insight_segments FOR SELECT TO runner_api, runner_jobs USING ((organization_id =
  (SELECT app.current_organization())));
GRANT SELECT (organization_id, id, source_id, month, row_count, size_bytes, sha256, min_at, max_at, distinct_keys,
  schema_version, staged, published_revision, retired_revision, retired_at, created_at) ON app.insight_segments TO
  runner_admin;
GRANT SELECT ON app.insight_segments TO runner_api, runner_jobs;
GRANT SELECT (organization_id, id, source_id, month, row_count, size_bytes, staged, retired_at) ON app.insight_segments
  TO runner_global;
GRANT SELECT, INSERT, UPDATE, DELETE ON app.insight_segments TO runner_scoped;

-- insight_sources ─────────────────────────────────────────────────────────────────────────────────────────────────────
-- What facts are collected of: a dataset of a thing of an account at a provider.
CREATE TABLE app.insight_sources (
  organization_id uuid NOT NULL,                                  -- The organization it belongs to.
  id uuid NOT NULL DEFAULT app.uuid_v7(),                         -- Id of the source.
  integration_id uuid,                                            -- The integration that collects it; null: it is gone.
  connector_key text NOT NULL,                                    -- The key of that integration, as it last was.
  provider text NOT NULL,                                         -- Whose it is.
  account_id text NOT NULL,                                       -- The account, recognized and not shown: SHA-256, in hex.
  resource_id text NOT NULL,                                      -- The thing at the provider.
  dataset text NOT NULL,                                          -- Which facts of it.
  environment app.insight_environment NOT NULL,                   -- test: of the test mode of the provider.
  timezone text NOT NULL,                                         -- The clock of its days; another one makes another source.
  in_scope boolean NOT NULL DEFAULT true,                         -- Settings and provider name it.
  generation integer NOT NULL DEFAULT 1,                          -- Rises when what it is collected with changes.
  connection_revision integer NOT NULL,                           -- The connection of the generation.
  scope_digest text NOT NULL,                                     -- SHA-256, in hex, of its settings.
  authorization_epoch integer NOT NULL,                           -- Its authorizationEpoch.
  adapter_version integer NOT NULL,                               -- How it is collected.
  schema_version integer NOT NULL,                                -- What its facts look like.
  coverage jsonb NOT NULL DEFAULT '[]',                           -- [{start, end, state, reason?}]: what is known of which time, sorted and disjoint.
  last_completed_at timestamptz,                                  -- When something of it was last collected to its end.
  failure_count integer NOT NULL DEFAULT 0,                       -- Failures in a row.
  last_error jsonb,                                               -- {code, message, at} of the last one; null: it works.
  created_at timestamptz NOT NULL DEFAULT now(),                  -- When it was discovered.
  updated_at timestamptz NOT NULL DEFAULT now(),                  -- When it was last changed.
  CONSTRAINT insight_sources_pkey PRIMARY KEY (organization_id, id),
  CONSTRAINT insight_sources_identity_key UNIQUE (organization_id, provider, account_id, resource_id, dataset,
    environment, timezone),
  CONSTRAINT insight_sources_integration_id_fkey FOREIGN KEY (organization_id, integration_id) REFERENCES
    app.integrations(organization_id, id) ON DELETE SET NULL (integration_id),
  CONSTRAINT insight_sources_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES app.organizations(id) ON DELETE
    CASCADE,
  CONSTRAINT insight_sources_account_id_check CHECK ((account_id ~ '^[0-9a-f]{64}$')),
  CONSTRAINT insight_sources_connector_key_check CHECK (((length(connector_key) >= 1) AND (length(connector_key) <= 63))),
  CONSTRAINT insight_sources_coverage_check CHECK ((jsonb_typeof(coverage) = 'array')),
  CONSTRAINT insight_sources_dataset_check CHECK (((length(dataset) >= 1) AND (length(dataset) <= 63))),
  CONSTRAINT insight_sources_failure_count_check CHECK ((failure_count >= 0)),
  CONSTRAINT insight_sources_generation_check CHECK ((generation >= 1)),
  CONSTRAINT insight_sources_resource_id_check CHECK (((length(resource_id) >= 1) AND (length(resource_id) <= 200))),
  CONSTRAINT insight_sources_scope_digest_check CHECK ((scope_digest ~ '^[0-9a-f]{64}$')),
  CONSTRAINT insight_sources_timezone_check CHECK (((length(timezone) >= 1) AND (length(timezone) <= 63)))
);
-- Not sampled (SET STATISTICS 0): connector_key, provider, account_id, resource_id, dataset, timezone, scope_digest,
-- coverage, failure_count, last_error
CREATE INDEX insight_sources_integration_id_idx ON app.insight_sources USING btree (organization_id, integration_id);
ALTER TABLE app.insight_sources ENABLE ROW LEVEL SECURITY;
ALTER TABLE app.insight_sources FORCE ROW LEVEL SECURITY;
CREATE POLICY admin_read ON app.insight_sources FOR SELECT TO runner_admin USING (((((SELECT app.current_organization())
  IS NULL) OR (organization_id = (SELECT app.current_organization()))) AND (organization_id <> ALL ((SELECT
  app.organizations_deleted())::uuid[]))));
CREATE POLICY global_read ON app.insight_sources FOR SELECT TO runner_global USING (true);
CREATE POLICY owner_all ON app.insight_sources TO runner_owner USING (true) WITH CHECK (true);
CREATE POLICY report_read ON app.insight_sources FOR SELECT TO runner_report USING ((app.report_shows(organization_id,
  (SELECT (pg_has_role(SESSION_USER, 'runner_report'::name, 'member') OR (EXISTS (SELECT FROM app.analysts a WHERE
  ((a.login = SESSION_USER) AND (a.login_oid = ((to_regrole(quote_ident(SESSION_USER)))::oid)::bigint) AND
  a.all_organizations))))), ARRAY(SELECT g.organization_id FROM app.analyst_grants g WHERE ((g.login = SESSION_USER) AND
  (g.login_oid = ((to_regrole(quote_ident(SESSION_USER)))::oid)::bigint)))) AND (organization_id = ANY (ARRAY(SELECT
  o.id FROM app.organizations o)))));
CREATE POLICY scoped_all ON app.insight_sources TO runner_scoped USING ((organization_id = (SELECT
  app.current_organization()))) WITH CHECK ((organization_id = (SELECT app.current_organization())));
CREATE POLICY tenant_read ON app.insight_sources FOR SELECT TO runner_api, runner_jobs USING ((organization_id = (SELECT
  app.current_organization())));
GRANT SELECT (organization_id, id, integration_id, connector_key, provider, account_id, resource_id, dataset,
  environment, timezone, in_scope, generation, connection_revision, authorization_epoch, adapter_version,
  schema_version, coverage, last_completed_at, failure_count, last_error, created_at, updated_at) ON app.insight_sources
  TO runner_admin;
GRANT SELECT ON app.insight_sources TO runner_api, runner_jobs;
GRANT SELECT (organization_id, id, integration_id, in_scope, failure_count) ON app.insight_sources TO runner_global;
GRANT SELECT (organization_id, id, integration_id, connector_key, provider, resource_id, dataset, environment, timezone,
  in_scope, generation, coverage, last_completed_at, failure_count, last_error, created_at, updated_at) ON
  app.insight_sources TO runner_report;
GRANT SELECT, INSERT, UPDATE, DELETE ON app.insight_sources TO runner_scoped;

-- insight_units ───────────────────────────────────────────────────────────────────────────────────────────────────────
-- Units of collecting: one claim of one connector each, at most so many requests and so long.
CREATE TABLE app.insight_units (
  organization_id uuid NOT NULL,                                  -- The organization it belongs to.
  id uuid NOT NULL,                                               -- Id of the unit, which its facts name.
  integration_id uuid NOT NULL,                                   -- The connector.
  source_id uuid,                                                 -- The source; null: it looks for sources.
  mode app.insight_unit_mode NOT NULL,                            -- What it does.
  state app.insight_unit_state NOT NULL DEFAULT 'leased',         -- leased: under way. discarded: what it was claimed for had changed. released: its process stopped. expired: its lease ended.
  fence bigint NOT NULL,                                          -- The number of its claim.
  generation_digest text NOT NULL,                                -- SHA-256, in hex, of what it was claimed for.
  pages integer NOT NULL DEFAULT 0,                               -- Requests that brought something.
  records integer NOT NULL DEFAULT 0,                             -- What they brought.
  bytes bigint NOT NULL DEFAULT 0,                                -- How much that was.
  changed integer NOT NULL DEFAULT 0,                             -- Facts that were new or changed.
  revision bigint,                                                -- What it published; null: nothing.
  error jsonb,                                                    -- {code, message} of one that failed.
  started_at timestamptz NOT NULL DEFAULT now(),                  -- When it was claimed.
  ended_at timestamptz,                                           -- When it ended.
  CONSTRAINT insight_units_pkey PRIMARY KEY (organization_id, id),
  CONSTRAINT insight_units_integration_id_fkey FOREIGN KEY (organization_id, integration_id) REFERENCES
    app.insight_connectors(organization_id, integration_id) ON DELETE CASCADE,
  CONSTRAINT insight_units_source_id_fkey FOREIGN KEY (organization_id, source_id) REFERENCES
    app.insight_sources(organization_id, id) ON DELETE CASCADE,
  CONSTRAINT insight_units_ended_check CHECK (((state = 'leased') = (ended_at IS NULL))),
  CONSTRAINT insight_units_generation_digest_check CHECK ((generation_digest ~ '^[0-9a-f]{64}$')),
  CONSTRAINT insight_units_source_unless_discovery_check CHECK (((source_id IS NULL) = (mode = 'discovery')))
);
-- Not sampled (SET STATISTICS 0): generation_digest, pages, records, bytes, changed, error
CREATE INDEX insight_units_ended_at_idx ON app.insight_units USING btree (ended_at) WHERE (ended_at IS NOT NULL);
CREATE INDEX insight_units_ended_at_turns_idx ON app.insight_units USING btree (organization_id, ended_at) WHERE
  (ended_at IS NOT NULL);
CREATE INDEX insight_units_integration_id_idx ON app.insight_units USING btree (organization_id, integration_id);
CREATE INDEX insight_units_source_id_idx ON app.insight_units USING btree (organization_id, source_id, started_at DESC);
ALTER TABLE app.insight_units ENABLE ROW LEVEL SECURITY;
ALTER TABLE app.insight_units FORCE ROW LEVEL SECURITY;
CREATE POLICY admin_read ON app.insight_units FOR SELECT TO runner_admin USING (((((SELECT app.current_organization())
  IS NULL) OR (organization_id = (SELECT app.current_organization()))) AND (organization_id <> ALL ((SELECT
  app.organizations_deleted())::uuid[]))));
CREATE POLICY global_all ON app.insight_units TO runner_global USING (true) WITH CHECK (true);
CREATE POLICY owner_all ON app.insight_units TO runner_owner USING (true) WITH CHECK (true);
CREATE POLICY report_read ON app.insight_units FOR SELECT TO runner_report USING ((app.report_shows(organization_id,
  (SELECT (pg_has_role(SESSION_USER, 'runner_report'::name, 'member') OR (EXISTS (SELECT FROM app.analysts a WHERE
  ((a.login = SESSION_USER) AND (a.login_oid = ((to_regrole(quote_ident(SESSION_USER)))::oid)::bigint) AND
  a.all_organizations))))), ARRAY(SELECT g.organization_id FROM app.analyst_grants g WHERE ((g.login = SESSION_USER) AND
  (g.login_oid = ((to_regrole(quote_ident(SESSION_USER)))::oid)::bigint)))) AND (organization_id = ANY (ARRAY(SELECT
  o.id FROM app.organizations o)))));
CREATE POLICY scoped_all ON app.insight_units TO runner_scoped USING ((organization_id = (SELECT
  app.current_organization()))) WITH CHECK ((organization_id = (SELECT app.current_organization())));
CREATE POLICY tenant_read ON app.insight_units FOR SELECT TO runner_api, runner_jobs USING ((organization_id = (SELECT
  app.current_organization())));
GRANT SELECT (organization_id, id, integration_id, source_id, mode, state, pages, records, bytes, changed, revision,
  error, started_at, ended_at) ON app.insight_units TO runner_admin, runner_report;
GRANT SELECT ON app.insight_units TO runner_api, runner_jobs;
GRANT DELETE ON app.insight_units TO runner_global;
GRANT SELECT (organization_id, id, ended_at) ON app.insight_units TO runner_global;
GRANT SELECT, INSERT, UPDATE, DELETE ON app.insight_units TO runner_scoped;

-- integration_connections ─────────────────────────────────────────────────────────────────────────────────────────────
-- The account that an integration is connected to. No row: it is not connected.
CREATE TABLE app.integration_connections (
  organization_id uuid NOT NULL,                                  -- The organization it belongs to.
  integration_id uuid NOT NULL,                                   -- The integration; it has one connection at most.
  kind app.integration_connection_kind NOT NULL,                  -- How it was connected.
  account_label text,                                             -- The account, masked.
  subject_hash text,                                              -- SHA-256, in hex, of the account: to see that it is the same. Null: there is none.
  granted_scopes jsonb,                                           -- What the provider granted; null: it does not tell.
  missing_scopes jsonb NOT NULL DEFAULT '[]',                     -- What the provider said is missing, since it was last authorized: the next time asks for it.
  grant_hash text,                                                -- SHA-256, in hex, of the authorization at the provider, which other connections may hang on.
  connected_at timestamptz NOT NULL,                              -- Since when, or since when again.
  token_version integer NOT NULL DEFAULT 1,                       -- Rises when the tokens are exchanged.
  token_expires_at timestamptz,                                   -- When the token that is used expires; null: never, or unknown.
  refresh_due_at timestamptz,                                     -- When it is refreshed although nobody uses it; null: never.
  refresh_lease_id uuid,                                          -- Whoever refreshes it just now.
  refresh_lease_expires_at timestamptz,                           -- When another one may.
  reauthorization_reason app.integration_reauthorization_reason,  -- Why it has to be authorized again; null: it need not.
  reauthorization_at timestamptz,                                 -- Since when.
  degraded_at timestamptz,                                        -- Since when the provider fails or limits us; null: it works.
  degraded_code text,                                             -- With which code of ours.
  checked_at timestamptz,                                         -- When it was last found well or ill.
  check_due_at timestamptz NOT NULL,                              -- When it is looked at next.
  CONSTRAINT integration_connections_pkey PRIMARY KEY (organization_id, integration_id),
  CONSTRAINT integration_connections_integration_id_fkey FOREIGN KEY (organization_id, integration_id) REFERENCES
    app.integrations(organization_id, id) ON DELETE CASCADE,
  CONSTRAINT integration_connections_account_label_check CHECK (((length(account_label) >= 1) AND (length(account_label)
    <= 200))),
  CONSTRAINT integration_connections_account_unless_none_check CHECK (((kind = 'none') = (subject_hash IS NULL))),
  CONSTRAINT integration_connections_degraded_check CHECK (((degraded_at IS NULL) = (degraded_code IS NULL))),
  CONSTRAINT integration_connections_grant_hash_check CHECK ((grant_hash ~ '^[0-9a-f]{64}$')),
  CONSTRAINT integration_connections_granted_scopes_check CHECK ((jsonb_typeof(granted_scopes) = 'array')),
  CONSTRAINT integration_connections_missing_scopes_check CHECK (((jsonb_typeof(missing_scopes) = 'array') AND
    (jsonb_array_length(missing_scopes) <= 50))),
  CONSTRAINT integration_connections_reauthorization_check CHECK (((reauthorization_reason IS NULL) = (reauthorization_at
    IS NULL))),
  CONSTRAINT integration_connections_refresh_lease_check CHECK (((refresh_lease_id IS NULL) = (refresh_lease_expires_at IS
    NULL))),
  CONSTRAINT integration_connections_subject_hash_check CHECK ((subject_hash ~ '^[0-9a-f]{64}$')),
  CONSTRAINT integration_connections_token_version_check CHECK ((token_version >= 1))
);
-- Not sampled (SET STATISTICS 0): account_label, subject_hash, granted_scopes, missing_scopes, grant_hash,
-- degraded_code
CREATE INDEX integration_connections_all_check_due_at_idx ON app.integration_connections USING btree (check_due_at)
  WHERE (reauthorization_reason IS NULL);
CREATE INDEX integration_connections_all_refresh_due_at_idx ON app.integration_connections USING btree (refresh_due_at)
  WHERE (reauthorization_reason IS NULL);
CREATE INDEX integration_connections_check_due_at_idx ON app.integration_connections USING btree (organization_id,
  check_due_at, integration_id) WHERE (reauthorization_reason IS NULL);
CREATE INDEX integration_connections_grant_hash_idx ON app.integration_connections USING btree (grant_hash) WHERE
  (grant_hash IS NOT NULL);
CREATE INDEX integration_connections_refresh_due_at_idx ON app.integration_connections USING btree (organization_id,
  refresh_due_at, integration_id) WHERE (reauthorization_reason IS NULL);
CREATE TRIGGER integration_connections_raise_epoch AFTER INSERT OR DELETE OR UPDATE ON app.integration_connections FOR
  EACH ROW EXECUTE FUNCTION app.integration_connections_raise_epoch();
CREATE TRIGGER integration_connections_wake_connectors AFTER INSERT OR UPDATE ON app.integration_connections FOR EACH
  ROW EXECUTE FUNCTION app.insight_connectors_wake();
ALTER TABLE app.integration_connections ENABLE ROW LEVEL SECURITY;
ALTER TABLE app.integration_connections FORCE ROW LEVEL SECURITY;
CREATE POLICY admin_read ON app.integration_connections FOR SELECT TO runner_admin USING (((((SELECT
  app.current_organization()) IS NULL) OR (organization_id = (SELECT app.current_organization()))) AND (organization_id
  <> ALL ((SELECT app.organizations_deleted())::uuid[]))));
CREATE POLICY global_read ON app.integration_connections FOR SELECT TO runner_global USING (true);
CREATE POLICY owner_all ON app.integration_connections TO runner_owner USING (true) WITH CHECK (true);
CREATE POLICY report_read ON app.integration_connections FOR SELECT TO runner_report USING
  ((app.report_shows(organization_id, (SELECT (pg_has_role(SESSION_USER, 'runner_report'::name, 'member') OR (EXISTS
  (SELECT FROM app.analysts a WHERE ((a.login = SESSION_USER) AND (a.login_oid =
  ((to_regrole(quote_ident(SESSION_USER)))::oid)::bigint) AND a.all_organizations))))), ARRAY(SELECT g.organization_id
  FROM app.analyst_grants g WHERE ((g.login = SESSION_USER) AND (g.login_oid =
  ((to_regrole(quote_ident(SESSION_USER)))::oid)::bigint)))) AND (organization_id = ANY (ARRAY(SELECT o.id FROM
  app.organizations o)))));
CREATE POLICY scoped_all ON app.integration_connections TO runner_scoped USING ((organization_id = (SELECT
  app.current_organization()))) WITH CHECK ((organization_id = (SELECT app.current_organization())));
CREATE POLICY tenant_read ON app.integration_connections FOR SELECT TO runner_api, runner_jobs USING ((organization_id =
  (SELECT app.current_organization())));
GRANT SELECT (organization_id, integration_id, kind, account_label, granted_scopes, connected_at, token_version,
  token_expires_at, refresh_due_at, refresh_lease_expires_at, reauthorization_reason, reauthorization_at, degraded_at,
  degraded_code, checked_at, check_due_at) ON app.integration_connections TO runner_admin;
GRANT SELECT (organization_id, integration_id, kind, account_label, granted_scopes, connected_at, token_version,
  token_expires_at, refresh_due_at, refresh_lease_id, refresh_lease_expires_at, reauthorization_reason,
  reauthorization_at, degraded_at, degraded_code, checked_at, check_due_at) ON app.integration_connections TO
  runner_api, runner_jobs;
GRANT SELECT (organization_id, integration_id, grant_hash, refresh_due_at, reauthorization_reason, check_due_at) ON
  app.integration_connections TO runner_global;
GRANT SELECT (organization_id, integration_id, kind, connected_at, reauthorization_reason, reauthorization_at,
  degraded_at, degraded_code, checked_at) ON app.integration_connections TO runner_report;
GRANT SELECT, INSERT, UPDATE, DELETE ON app.integration_connections TO runner_scoped;

-- integration_context_repairs ─────────────────────────────────────────────────────────────────────────────────────────
-- What the next health report is to say of an integration.
CREATE TABLE app.integration_context_repairs (
  organization_id uuid NOT NULL,                                  -- The organization it belongs to.
  id uuid NOT NULL DEFAULT app.uuid_v7(),                         -- Id of the repair.
  integration_id uuid NOT NULL,                                   -- The integration.
  mapping jsonb NOT NULL,                                         -- What it means to the organization.
  status app.integration_repair_status NOT NULL DEFAULT 'queued',  -- queued: the next reconciliation takes it.
  report_revision integer,                                        -- The health report that says it.
  created_at timestamptz NOT NULL DEFAULT now(),                  -- When it was asked for.
  finished_at timestamptz,                                        -- When it was applied.
  CONSTRAINT integration_context_repairs_pkey PRIMARY KEY (organization_id, id),
  CONSTRAINT integration_context_repairs_integration_id_fkey FOREIGN KEY (organization_id, integration_id) REFERENCES
    app.integrations(organization_id, id) ON DELETE CASCADE,
  CONSTRAINT integration_context_repairs_finished_at_when_over_check CHECK (((status = 'queued') = (finished_at IS NULL))),
  CONSTRAINT integration_context_repairs_mapping_check CHECK ((jsonb_typeof(mapping) = 'object')),
  CONSTRAINT integration_context_repairs_report_when_applied_check CHECK (((status = 'applied') = (report_revision IS NOT
    NULL)))
);
-- Not sampled (SET STATISTICS 0): mapping
CREATE INDEX integration_context_repairs_all_queued_idx ON app.integration_context_repairs USING btree (created_at)
  WHERE (status = 'queued');
CREATE INDEX integration_context_repairs_integration_id_idx ON app.integration_context_repairs USING btree
  (organization_id, integration_id, created_at, id);
CREATE INDEX integration_context_repairs_queued_idx ON app.integration_context_repairs USING btree (organization_id,
  created_at, id) WHERE (status = 'queued');
ALTER TABLE app.integration_context_repairs ENABLE ROW LEVEL SECURITY;
ALTER TABLE app.integration_context_repairs FORCE ROW LEVEL SECURITY;
CREATE POLICY admin_read ON app.integration_context_repairs FOR SELECT TO runner_admin USING (((((SELECT
  app.current_organization()) IS NULL) OR (organization_id = (SELECT app.current_organization()))) AND (organization_id
  <> ALL ((SELECT app.organizations_deleted())::uuid[]))));
CREATE POLICY global_read ON app.integration_context_repairs FOR SELECT TO runner_global USING (true);
CREATE POLICY owner_all ON app.integration_context_repairs TO runner_owner USING (true) WITH CHECK (true);
CREATE POLICY scoped_all ON app.integration_context_repairs TO runner_scoped USING ((organization_id = (SELECT
  app.current_organization()))) WITH CHECK ((organization_id = (SELECT app.current_organization())));
CREATE POLICY tenant_read ON app.integration_context_repairs FOR SELECT TO runner_api, runner_jobs USING
  ((organization_id = (SELECT app.current_organization())));
GRANT SELECT (organization_id, id, integration_id, mapping, status, report_revision, created_at, finished_at) ON
  app.integration_context_repairs TO runner_admin;
GRANT SELECT ON app.integration_context_repairs TO runner_api, runner_jobs;
GRANT SELECT (organization_id, id, status, created_at) ON app.integration_context_repairs TO runner_global;
GRANT SELECT, INSERT, UPDATE, DELETE ON app.integration_context_repairs TO runner_scoped;

-- integration_gateway_capabilities ────────────────────────────────────────────────────────────────────────────────────
-- What an execution calls the gateway with. Each call checks it again, and the execution that it is for.
CREATE TABLE app.integration_gateway_capabilities (
  organization_id uuid NOT NULL,                                  -- The organization it belongs to.
  token_hash text NOT NULL,                                       -- SHA-256 of the capability, in hex.
  integration_id uuid NOT NULL,                                   -- The integration that it is for.
  agent_profile_id uuid NOT NULL,                                 -- The profile that it is for.
  run_id uuid NOT NULL,                                           -- The execution that it is for.
  kind app.integration_gateway_kind NOT NULL,                     -- Which of the gateways.
  connection_revision integer NOT NULL,                           -- The connection that it is for.
  authorization_epoch integer NOT NULL,                           -- What agents could do when it was made; void once that has changed.
  expires_at timestamptz NOT NULL,                                -- When it ends at the latest.
  created_at timestamptz NOT NULL DEFAULT now(),                  -- When it was made.
  CONSTRAINT integration_gateway_capabilities_pkey PRIMARY KEY (organization_id, token_hash),
  CONSTRAINT integration_gateway_capabilities_agent_profile_id_fkey FOREIGN KEY (organization_id, agent_profile_id)
    REFERENCES app.agent_profiles(organization_id, id) ON DELETE CASCADE,
  CONSTRAINT integration_gateway_capabilities_integration_id_fkey FOREIGN KEY (organization_id, integration_id) REFERENCES
    app.integrations(organization_id, id) ON DELETE CASCADE,
  CONSTRAINT integration_gateway_capabilities_run_id_fkey FOREIGN KEY (organization_id, run_id) REFERENCES
    app.runs(organization_id, id) ON DELETE CASCADE,
  CONSTRAINT integration_gateway_capabilities_token_hash_check CHECK ((token_hash ~ '^[0-9a-f]{64}$'))
);
CREATE INDEX integration_gateway_capabilities_agent_profile_id_idx ON app.integration_gateway_capabilities USING btree
  (organization_id, agent_profile_id);
CREATE INDEX integration_gateway_capabilities_expires_at_idx ON app.integration_gateway_capabilities USING btree
  (expires_at);
CREATE INDEX integration_gateway_capabilities_integration_id_idx ON app.integration_gateway_capabilities USING btree
  (organization_id, integration_id);
CREATE INDEX integration_gateway_capabilities_run_id_idx ON app.integration_gateway_capabilities USING btree
  (organization_id, run_id);
CREATE INDEX integration_gateway_capabilities_token_hash_idx ON app.integration_gateway_capabilities USING btree
  (token_hash);
ALTER TABLE app.integration_gateway_capabilities ENABLE ROW LEVEL SECURITY;
ALTER TABLE app.integration_gateway_capabilities FORCE ROW LEVEL SECURITY;
CREATE POLICY global_all ON app.integration_gateway_capabilities TO runner_global USING (true) WITH CHECK (true);
CREATE POLICY owner_all ON app.integration_gateway_capabilities TO runner_owner USING (true) WITH CHECK (true);
CREATE POLICY scoped_all ON app.integration_gateway_capabilities TO runner_scoped USING ((organization_id = (SELECT
  app.current_organization()))) WITH CHECK ((organization_id = (SELECT app.current_organization())));
GRANT DELETE ON app.integration_gateway_capabilities TO runner_global;
GRANT SELECT (organization_id, token_hash, expires_at) ON app.integration_gateway_capabilities TO runner_global;
GRANT SELECT, INSERT, UPDATE, DELETE ON app.integration_gateway_capabilities TO runner_scoped;

-- integration_oauth_states ────────────────────────────────────────────────────────────────────────────────────────────
-- Authorizations that somebody has begun: ten minutes, consumed once.
CREATE TABLE app.integration_oauth_states (
  organization_id uuid NOT NULL,                                  -- The organization it belongs to.
  id uuid NOT NULL DEFAULT app.uuid_v7(),                         -- Id of the flow.
  integration_id uuid NOT NULL,                                   -- What is to be connected.
  connection_revision integer NOT NULL,                           -- The connection revision when it was begun.
  connected_at timestamptz,                                       -- When the connection of then had been authorized last; null: there was none.
  ticket_hash text,                                               -- Digest of the ticket of the page that begins it; null once used.
  state_hash text,                                                -- Digest of the state; null until its button was used.
  request_token_hash text,                                        -- Digest of the request token of OAuth 1.0a.
  services jsonb NOT NULL DEFAULT '[]',                           -- What was selected.
  access_mode app.integration_access_mode NOT NULL,               -- What is asked for.
  replace_account boolean NOT NULL,                               -- Another account may take the place of the connected one.
  starter text,                                                   -- Who began it; null: no session.
  browser_hash text,                                              -- Digest of the cookie of the browser that went to the provider.
  key_id text,                                                    -- The key that the data key of its secrets is wrapped by.
  wrapped_key bytea,                                              -- The data key, wrapped; never shown.
  ciphertext bytea,                                               -- Its secrets; never shown, and gone when it is consumed.
  expires_at timestamptz NOT NULL,                                -- Until when it may end.
  consumed_at timestamptz,                                        -- When the provider sent the browser back.
  result app.integration_oauth_result,                            -- How it ended.
  created_at timestamptz NOT NULL DEFAULT now(),                  -- When it was begun.
  CONSTRAINT integration_oauth_states_pkey PRIMARY KEY (organization_id, id),
  CONSTRAINT integration_oauth_states_integration_id_fkey FOREIGN KEY (organization_id, integration_id) REFERENCES
    app.integrations(organization_id, id) ON DELETE CASCADE,
  CONSTRAINT integration_oauth_states_begun_check CHECK ((((ticket_hash IS NULL) = (browser_hash IS NOT NULL)) AND
    ((ticket_hash IS NULL) = (state_hash IS NOT NULL)))),
  CONSTRAINT integration_oauth_states_browser_hash_check CHECK ((browser_hash ~ '^[0-9a-f]{64}$')),
  CONSTRAINT integration_oauth_states_connection_revision_check CHECK ((connection_revision >= 0)),
  CONSTRAINT integration_oauth_states_request_token_hash_check CHECK ((request_token_hash ~ '^[0-9a-f]{64}$')),
  CONSTRAINT integration_oauth_states_result_when_consumed_check CHECK (((result IS NULL) OR (consumed_at IS NOT NULL))),
  CONSTRAINT integration_oauth_states_sealed_check CHECK ((((key_id IS NULL) = (ciphertext IS NULL)) AND ((key_id IS NULL)
    = (wrapped_key IS NULL)))),
  CONSTRAINT integration_oauth_states_sealed_until_consumed_check CHECK (((consumed_at IS NULL) OR (key_id IS NULL))),
  CONSTRAINT integration_oauth_states_services_check CHECK ((jsonb_typeof(services) = 'array')),
  CONSTRAINT integration_oauth_states_state_hash_check CHECK ((state_hash ~ '^[0-9a-f]{64}$')),
  CONSTRAINT integration_oauth_states_ticket_hash_check CHECK ((ticket_hash ~ '^[0-9a-f]{64}$'))
);
-- Not sampled (SET STATISTICS 0): services, starter, wrapped_key, ciphertext
CREATE INDEX integration_oauth_states_expires_at_idx ON app.integration_oauth_states USING btree (expires_at);
CREATE INDEX integration_oauth_states_integration_id_idx ON app.integration_oauth_states USING btree (organization_id,
  integration_id);
CREATE INDEX integration_oauth_states_request_token_hash_idx ON app.integration_oauth_states USING btree
  (request_token_hash) WHERE (request_token_hash IS NOT NULL);
CREATE INDEX integration_oauth_states_state_hash_idx ON app.integration_oauth_states USING btree (state_hash) WHERE
  (state_hash IS NOT NULL);
CREATE INDEX integration_oauth_states_ticket_hash_idx ON app.integration_oauth_states USING btree (ticket_hash) WHERE
  (ticket_hash IS NOT NULL);
ALTER TABLE app.integration_oauth_states ENABLE ROW LEVEL SECURITY;
ALTER TABLE app.integration_oauth_states FORCE ROW LEVEL SECURITY;
CREATE POLICY global_all ON app.integration_oauth_states TO runner_global USING (true) WITH CHECK (true);
CREATE POLICY owner_all ON app.integration_oauth_states TO runner_owner USING (true) WITH CHECK (true);
CREATE POLICY scoped_all ON app.integration_oauth_states TO runner_scoped USING ((organization_id = (SELECT
  app.current_organization()))) WITH CHECK ((organization_id = (SELECT app.current_organization())));
GRANT DELETE ON app.integration_oauth_states TO runner_global;
GRANT SELECT (organization_id, id, ticket_hash, state_hash, request_token_hash, key_id, expires_at) ON
  app.integration_oauth_states TO runner_global;
GRANT SELECT, INSERT, UPDATE, DELETE ON app.integration_oauth_states TO runner_scoped;

-- integration_secrets ─────────────────────────────────────────────────────────────────────────────────────────────────
-- Encrypted credentials and tokens of connections; read by one function.
CREATE TABLE app.integration_secrets (
  organization_id uuid NOT NULL,                                  -- The organization it belongs to.
  integration_id uuid NOT NULL,                                   -- The integration.
  field text NOT NULL,                                            -- Which of its secrets.
  revision integer NOT NULL,                                      -- The connection revision that it belongs to.
  key_id text NOT NULL,                                           -- The key that its data key is wrapped by.
  wrapped_key bytea NOT NULL,                                     -- Its data key, wrapped; never shown.
  ciphertext bytea NOT NULL,                                      -- What it protects; never shown.
  created_at timestamptz NOT NULL DEFAULT now(),                  -- When it was stored.
  CONSTRAINT integration_secrets_pkey PRIMARY KEY (organization_id, integration_id, field),
  CONSTRAINT integration_secrets_integration_id_fkey FOREIGN KEY (organization_id, integration_id) REFERENCES
    app.integration_connections(organization_id, integration_id) ON DELETE CASCADE,
  CONSTRAINT integration_secrets_ciphertext_check CHECK (((octet_length(ciphertext) >= 1) AND (octet_length(ciphertext) <=
    65536))),
  CONSTRAINT integration_secrets_field_check CHECK (((field ~ '^[a-z]+(_[a-z]+)*$') AND (length(field) <= 63))),
  CONSTRAINT integration_secrets_key_id_check CHECK (((length(key_id) >= 1) AND (length(key_id) <= 63))),
  CONSTRAINT integration_secrets_revision_check CHECK ((revision >= 1)),
  CONSTRAINT integration_secrets_wrapped_key_check CHECK (((octet_length(wrapped_key) >= 1) AND (octet_length(wrapped_key)
    <= 256)))
);
-- Not sampled (SET STATISTICS 0): wrapped_key, ciphertext
CREATE INDEX integration_secrets_key_id_idx ON app.integration_secrets USING btree (key_id, organization_id,
  integration_id, field);
ALTER TABLE app.integration_secrets ENABLE ROW LEVEL SECURITY;
ALTER TABLE app.integration_secrets FORCE ROW LEVEL SECURITY;
CREATE POLICY global_read ON app.integration_secrets FOR SELECT TO runner_global USING (true);
CREATE POLICY owner_all ON app.integration_secrets TO runner_owner USING (true) WITH CHECK (true);
CREATE POLICY scoped_all ON app.integration_secrets TO runner_scoped USING ((organization_id = (SELECT
  app.current_organization()))) WITH CHECK ((organization_id = (SELECT app.current_organization())));
GRANT SELECT (organization_id, integration_id, field, revision, key_id, wrapped_key) ON app.integration_secrets TO
  runner_global;
GRANT SELECT, INSERT, UPDATE, DELETE ON app.integration_secrets TO runner_scoped;

-- integration_tools ───────────────────────────────────────────────────────────────────────────────────────────────────
-- What can be done with an integration.
CREATE TABLE app.integration_tools (
  organization_id uuid NOT NULL,                                  -- The organization it belongs to.
  integration_id uuid NOT NULL,                                   -- The integration.
  key text NOT NULL,                                              -- Its name at the provider.
  place integer NOT NULL,                                         -- Its place among the tools.
  title text NOT NULL,                                            -- For people.
  description text NOT NULL DEFAULT '',                           -- What it does, in the words of the provider.
  effect app.integration_effect NOT NULL,                         -- read: looks. write: changes something outside.
  risk app.integration_risk NOT NULL,                             -- What an approval is asked for by.
  required_scopes jsonb NOT NULL DEFAULT '[]',                    -- One of these has to be granted; empty: any connection will do.
  input_schema jsonb NOT NULL,                                    -- JSON Schema of its input.
  digest text NOT NULL,                                           -- SHA-256, in hex, of what its owner enabled.
  enabled boolean NOT NULL DEFAULT false,                         -- Its owner lets agents use it.
  offered boolean NOT NULL DEFAULT true,                          -- The provider offered it at the last look.
  CONSTRAINT integration_tools_pkey PRIMARY KEY (organization_id, integration_id, key),
  CONSTRAINT integration_tools_integration_id_fkey FOREIGN KEY (organization_id, integration_id) REFERENCES
    app.integrations(organization_id, id) ON DELETE CASCADE,
  CONSTRAINT integration_tools_description_check CHECK ((length(description) <= 4000)),
  CONSTRAINT integration_tools_digest_check CHECK ((digest ~ '^[0-9a-f]{64}$')),
  CONSTRAINT integration_tools_input_schema_check CHECK (((jsonb_typeof(input_schema) = 'object') AND
    (octet_length(input_schema) <= 131072))),
  CONSTRAINT integration_tools_key_check CHECK (((length(key) >= 1) AND (length(key) <= 128))),
  CONSTRAINT integration_tools_offered_when_enabled_check CHECK ((offered OR (NOT enabled))),
  CONSTRAINT integration_tools_required_scopes_check CHECK ((jsonb_typeof(required_scopes) = 'array')),
  CONSTRAINT integration_tools_title_check CHECK ((length(title) <= 200))
);
-- Not sampled (SET STATISTICS 0): title, description, required_scopes, input_schema
CREATE TRIGGER integration_tools_raise_epoch AFTER INSERT OR DELETE OR UPDATE ON app.integration_tools FOR EACH ROW
  EXECUTE FUNCTION app.integration_tools_raise_epoch();
ALTER TABLE app.integration_tools ENABLE ROW LEVEL SECURITY;
ALTER TABLE app.integration_tools FORCE ROW LEVEL SECURITY;
CREATE POLICY admin_read ON app.integration_tools FOR SELECT TO runner_admin USING (((((SELECT
  app.current_organization()) IS NULL) OR (organization_id = (SELECT app.current_organization()))) AND (organization_id
  <> ALL ((SELECT app.organizations_deleted())::uuid[]))));
CREATE POLICY owner_all ON app.integration_tools TO runner_owner USING (true) WITH CHECK (true);
CREATE POLICY report_read ON app.integration_tools FOR SELECT TO runner_report USING ((app.report_shows(organization_id,
  (SELECT (pg_has_role(SESSION_USER, 'runner_report'::name, 'member') OR (EXISTS (SELECT FROM app.analysts a WHERE
  ((a.login = SESSION_USER) AND (a.login_oid = ((to_regrole(quote_ident(SESSION_USER)))::oid)::bigint) AND
  a.all_organizations))))), ARRAY(SELECT g.organization_id FROM app.analyst_grants g WHERE ((g.login = SESSION_USER) AND
  (g.login_oid = ((to_regrole(quote_ident(SESSION_USER)))::oid)::bigint)))) AND (organization_id = ANY (ARRAY(SELECT
  o.id FROM app.organizations o)))));
CREATE POLICY scoped_all ON app.integration_tools TO runner_scoped USING ((organization_id = (SELECT
  app.current_organization()))) WITH CHECK ((organization_id = (SELECT app.current_organization())));
CREATE POLICY tenant_read ON app.integration_tools FOR SELECT TO runner_api, runner_jobs USING ((organization_id =
  (SELECT app.current_organization())));
GRANT SELECT (organization_id, integration_id, key, place, title, description, effect, risk, required_scopes,
  input_schema, digest, enabled, offered) ON app.integration_tools TO runner_admin;
GRANT SELECT ON app.integration_tools TO runner_api, runner_jobs;
GRANT SELECT (organization_id, integration_id, effect, enabled, offered) ON app.integration_tools TO runner_report;
GRANT SELECT, INSERT, UPDATE, DELETE ON app.integration_tools TO runner_scoped;

-- integrations ────────────────────────────────────────────────────────────────────────────────────────────────────────
-- What an organization connects to. Several may be of one provider.
CREATE TABLE app.integrations (
  organization_id uuid NOT NULL,                                  -- The organization it belongs to.
  id uuid NOT NULL DEFAULT app.uuid_v7(),                         -- Id of the integration.
  key text NOT NULL,                                              -- Stable name; unique in the organization.
  provider text NOT NULL,                                         -- Whose it is: a provider of the registry.
  name text NOT NULL,                                             -- For people.
  status app.integration_status NOT NULL DEFAULT 'enabled',       -- disabled: its owner has turned it off; nothing uses it.
  access_mode app.integration_access_mode NOT NULL DEFAULT 'read_only',  -- full: tools that write may be enabled.
  services jsonb NOT NULL DEFAULT '[]',                           -- What was selected of the provider, when it was authorized.
  departments jsonb NOT NULL DEFAULT '[]',                        -- Whose agents may use it; empty: all.
  settings_required boolean NOT NULL,                             -- Its provider needs settings before it can be used.
  settings jsonb,                                                 -- What of the provider may be reached; null: not set. They outlive a disconnect.
  context_mapping jsonb,                                          -- What it means to the organization, as last asked for.
  connection_revision integer NOT NULL DEFAULT 0,                 -- Rises with each connection, replacement and disconnect.
  discovery_at timestamptz,                                       -- When the provider was last asked what there is.
  discovery_status app.integration_discovery_status,              -- How that went.
  discovery_error jsonb,                                          -- {code, message} of one that failed.
  created_at timestamptz NOT NULL DEFAULT now(),                  -- When it was made.
  updated_at timestamptz NOT NULL DEFAULT now(),                  -- When it was last changed.
  CONSTRAINT integrations_pkey PRIMARY KEY (organization_id, id),
  CONSTRAINT integrations_key_key UNIQUE (organization_id, key),
  CONSTRAINT integrations_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES app.organizations(id) ON DELETE
    CASCADE,
  CONSTRAINT integrations_connection_revision_check CHECK ((connection_revision >= 0)),
  CONSTRAINT integrations_context_mapping_check CHECK ((jsonb_typeof(context_mapping) = 'object')),
  CONSTRAINT integrations_departments_check CHECK ((jsonb_typeof(departments) = 'array')),
  CONSTRAINT integrations_discovery_check CHECK ((((discovery_at IS NULL) = (discovery_status IS NULL)) AND
    ((discovery_error IS NOT NULL) = (NOT (discovery_status IS DISTINCT FROM 'failed'))))),
  CONSTRAINT integrations_key_check CHECK (((key ~ '^[a-z0-9]+(-[a-z0-9]+)*$') AND (length(key) <= 63) AND (key !~
    '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$'))),
  CONSTRAINT integrations_name_check CHECK (((length(name) >= 1) AND (length(name) <= 200))),
  CONSTRAINT integrations_provider_check CHECK (((provider ~ '^[a-z0-9]+(-[a-z0-9]+)*$') AND (length(provider) <= 63))),
  CONSTRAINT integrations_services_check CHECK ((jsonb_typeof(services) = 'array')),
  CONSTRAINT integrations_settings_check CHECK ((jsonb_typeof(settings) = 'object'))
);
-- Not sampled (SET STATISTICS 0): key, provider, name, services, departments, settings, context_mapping,
-- discovery_error
CREATE TRIGGER integrations_raise_epoch AFTER INSERT OR DELETE OR UPDATE ON app.integrations FOR EACH ROW EXECUTE
  FUNCTION app.integrations_raise_epoch();
CREATE TRIGGER integrations_wake_connectors AFTER INSERT OR DELETE OR UPDATE ON app.integrations FOR EACH ROW EXECUTE
  FUNCTION app.insight_connectors_wake();
ALTER TABLE app.integrations ENABLE ROW LEVEL SECURITY;
ALTER TABLE app.integrations FORCE ROW LEVEL SECURITY;
CREATE POLICY admin_read ON app.integrations FOR SELECT TO runner_admin USING (((((SELECT app.current_organization()) IS
  NULL) OR (organization_id = (SELECT app.current_organization()))) AND (organization_id <> ALL ((SELECT
  app.organizations_deleted())::uuid[]))));
CREATE POLICY owner_all ON app.integrations TO runner_owner USING (true) WITH CHECK (true);
CREATE POLICY report_read ON app.integrations FOR SELECT TO runner_report USING ((app.report_shows(organization_id,
  (SELECT (pg_has_role(SESSION_USER, 'runner_report'::name, 'member') OR (EXISTS (SELECT FROM app.analysts a WHERE
  ((a.login = SESSION_USER) AND (a.login_oid = ((to_regrole(quote_ident(SESSION_USER)))::oid)::bigint) AND
  a.all_organizations))))), ARRAY(SELECT g.organization_id FROM app.analyst_grants g WHERE ((g.login = SESSION_USER) AND
  (g.login_oid = ((to_regrole(quote_ident(SESSION_USER)))::oid)::bigint)))) AND (organization_id = ANY (ARRAY(SELECT
  o.id FROM app.organizations o)))));
CREATE POLICY scoped_all ON app.integrations TO runner_scoped USING ((organization_id = (SELECT
  app.current_organization()))) WITH CHECK ((organization_id = (SELECT app.current_organization())));
CREATE POLICY tenant_read ON app.integrations FOR SELECT TO runner_api, runner_jobs USING ((organization_id = (SELECT
  app.current_organization())));
GRANT SELECT (organization_id, id, key, provider, name, status, access_mode, services, departments, settings_required,
  settings, context_mapping, connection_revision, discovery_at, discovery_status, discovery_error, created_at,
  updated_at) ON app.integrations TO runner_admin;
GRANT SELECT ON app.integrations TO runner_api, runner_jobs;
GRANT SELECT (organization_id, id, key, provider, name, status, access_mode, settings_required, settings, discovery_at,
  discovery_status, created_at, updated_at) ON app.integrations TO runner_report;
GRANT SELECT, INSERT, UPDATE, DELETE ON app.integrations TO runner_scoped;

-- message_chunks ──────────────────────────────────────────────────────────────────────────────────────────────────────
-- The searched text of long messages, beyond their beginning.
CREATE TABLE app.message_chunks (
  organization_id uuid NOT NULL,                                  -- The organization it belongs to.
  message_id uuid NOT NULL,                                       -- The message.
  number integer NOT NULL,                                        -- From 1, in the order of the text.
  chat_id uuid NOT NULL,                                          -- Its chat.
  search_text text,                                               -- The piece, folded for search; null until the job has cut it.
  due_at timestamptz NOT NULL DEFAULT clock_timestamp(),          -- When the job cuts it: at once, or a while after it failed to.
  CONSTRAINT message_chunks_pkey PRIMARY KEY (organization_id, message_id, number),
  CONSTRAINT message_chunks_message_id_fkey FOREIGN KEY (organization_id, message_id) REFERENCES
    app.messages(organization_id, id) ON DELETE CASCADE,
  CONSTRAINT message_chunks_number_check CHECK ((number >= 1))
);
CREATE INDEX message_chunks_chat_id_idx ON app.message_chunks USING btree (organization_id, chat_id);
CREATE INDEX message_chunks_due_at_idx ON app.message_chunks USING btree (due_at) WHERE (search_text IS NULL);
CREATE INDEX message_chunks_due_at_turns_idx ON app.message_chunks USING btree (organization_id, due_at) WHERE
  (search_text IS NULL);
CREATE INDEX message_chunks_search_grams_idx ON app.message_chunks USING gin (organization_id,
  app.search_grams(search_text) COLLATE "C") WITH (gin_pending_list_limit='1024') WHERE (search_text IS NOT NULL) /* not
  sampled: column 2 */;
CREATE INDEX message_chunks_search_idx ON app.message_chunks USING gin (organization_id, search_text
  public.gin_trgm_ops) WITH (gin_pending_list_limit='1024') WHERE (search_text IS NOT NULL);
CREATE UNIQUE INDEX message_chunks_waiting_idx ON app.message_chunks USING btree (organization_id, message_id) WHERE
  (search_text IS NULL);
ALTER TABLE app.message_chunks ENABLE ROW LEVEL SECURITY;
ALTER TABLE app.message_chunks FORCE ROW LEVEL SECURITY;
CREATE POLICY global_read ON app.message_chunks FOR SELECT TO runner_global USING (true);
CREATE POLICY owner_all ON app.message_chunks TO runner_owner USING (true) WITH CHECK (true);
CREATE POLICY scoped_all ON app.message_chunks TO runner_scoped USING ((organization_id = (SELECT
  app.current_organization()))) WITH CHECK ((organization_id = (SELECT app.current_organization())));
GRANT SELECT ON app.message_chunks TO runner_global;
GRANT SELECT, INSERT, UPDATE, DELETE ON app.message_chunks TO runner_scoped;

-- messages ────────────────────────────────────────────────────────────────────────────────────────────────────────────
-- What people and agents say in chats.
CREATE TABLE app.messages (
  organization_id uuid NOT NULL,                                  -- The organization it belongs to.
  id uuid NOT NULL DEFAULT app.uuid_v7(),                         -- Id of the message.
  chat_id uuid NOT NULL,                                          -- Its chat.
  reply_to_message_id uuid,                                       -- The message that a reply is to.
  role app.message_role NOT NULL,                                 -- user: a person. assistant: an agent.
  status app.message_status NOT NULL,                             -- A reply is written while it is pending; complete, cancelled and failed are final.
  revision integer NOT NULL DEFAULT 1,                            -- Rises with every change.
  author jsonb,                                                   -- Who wrote it.
  parts jsonb NOT NULL,                                           -- Texts, questions, answers, notes, attachments.
  error jsonb,                                                    -- Why the reply failed.
  write_hash text,                                                -- Digest of the write that made this revision.
  search_text text,                                               -- The visible text, folded for search, from the moment when it is final; null before.
  completed_at timestamptz,                                       -- When it became final.
  created_at timestamptz NOT NULL,                                -- When it was made.
  updated_at timestamptz NOT NULL,                                -- When it was last changed.
  CONSTRAINT messages_pkey PRIMARY KEY (organization_id, id),
  CONSTRAINT messages_chat_id_fkey FOREIGN KEY (organization_id, chat_id) REFERENCES app.chats(organization_id, id) ON
    DELETE CASCADE,
  CONSTRAINT messages_reply_to_message_id_fkey FOREIGN KEY (organization_id, reply_to_message_id) REFERENCES
    app.messages(organization_id, id) ON DELETE CASCADE,
  CONSTRAINT messages_row_check CHECK (app.messages_check(messages.*))
) WITH (fillfactor=80);
-- The rules of app.messages_check:
-- when not (r.role = 'assistant' or r.status = 'complete') then 'messages_complete_when_user_check'
-- when not ((r.status in ('complete', 'cancelled', 'failed')) = (r.completed_at is not null))
--   then 'messages_completed_at_when_final_check'
-- when not ((r.status = 'failed') = (r.error is not null)) then 'messages_error_when_failed_check'
-- when not jsonb_typeof(r.parts) = 'array' then 'messages_parts_check'
-- when not ((r.role = 'assistant') = (r.reply_to_message_id is not null)) then 'messages_reply_when_assistant_check'
-- when not r.revision >= 1 then 'messages_revision_check'
-- when not ((r.completed_at is null) = (r.search_text is null)) then 'messages_search_text_when_final_check'
-- Not sampled (SET STATISTICS 0): author, parts, error
CREATE UNIQUE INDEX messages_active_idx ON app.messages USING btree (organization_id, chat_id) WHERE ((role =
  'assistant') AND status IN ('pending', 'cancelling'));
CREATE INDEX messages_created_at_idx ON app.messages USING btree (organization_id, chat_id, created_at, id);
CREATE UNIQUE INDEX messages_reply_to_message_id_idx ON app.messages USING btree (organization_id, reply_to_message_id)
  WHERE (reply_to_message_id IS NOT NULL);
CREATE INDEX messages_search_grams_idx ON app.messages USING gin (organization_id, app.search_grams(search_text) COLLATE
  "C") WITH (gin_pending_list_limit='1024') WHERE (search_text IS NOT NULL) /* not sampled: column 2 */;
CREATE INDEX messages_search_idx ON app.messages USING gin (organization_id, search_text public.gin_trgm_ops) WITH
  (gin_pending_list_limit='1024') WHERE (search_text IS NOT NULL);
CREATE TRIGGER messages_keep_revision BEFORE UPDATE ON app.messages FOR EACH ROW EXECUTE FUNCTION
  app.messages_keep_revision();
CREATE TRIGGER messages_wake AFTER INSERT OR UPDATE ON app.messages FOR EACH ROW EXECUTE FUNCTION app.messages_wake();
ALTER TABLE app.messages ENABLE ROW LEVEL SECURITY;
ALTER TABLE app.messages FORCE ROW LEVEL SECURITY;
CREATE POLICY admin_read ON app.messages FOR SELECT TO runner_admin USING (((((SELECT app.current_organization()) IS
  NULL) OR (organization_id = (SELECT app.current_organization()))) AND (organization_id <> ALL ((SELECT
  app.organizations_deleted())::uuid[])) AND (EXISTS (SELECT 1 FROM app.chats c WHERE ((c.organization_id =
  messages.organization_id) AND (c.id = messages.chat_id))))));
CREATE POLICY global_read ON app.messages FOR SELECT TO runner_global USING (true);
CREATE POLICY owner_all ON app.messages TO runner_owner USING (true) WITH CHECK (true);
CREATE POLICY report_read ON app.messages FOR SELECT TO runner_report USING ((app.report_shows(organization_id, (SELECT
  (pg_has_role(SESSION_USER, 'runner_report'::name, 'member') OR (EXISTS (SELECT FROM app.analysts a WHERE ((a.login =
  SESSION_USER) AND (a.login_oid = ((to_regrole(quote_ident(SESSION_USER)))::oid)::bigint) AND a.all_organizations))))),
  ARRAY(SELECT g.organization_id FROM app.analyst_grants g WHERE ((g.login = SESSION_USER) AND (g.login_oid =
  ((to_regrole(quote_ident(SESSION_USER)))::oid)::bigint)))) AND (organization_id = ANY (ARRAY(SELECT o.id FROM
  app.organizations o)))));
CREATE POLICY scoped_all ON app.messages TO runner_scoped USING ((organization_id = (SELECT
  app.current_organization()))) WITH CHECK ((organization_id = (SELECT app.current_organization())));
CREATE POLICY tenant_read ON app.messages FOR SELECT TO runner_api USING ((organization_id = (SELECT
  app.current_organization())));
GRANT SELECT (organization_id, id, chat_id, reply_to_message_id, role, status, revision, author, parts, error,
  completed_at, created_at, updated_at) ON app.messages TO runner_admin;
GRANT SELECT ON app.messages TO runner_api, runner_global;
GRANT SELECT (organization_id, id, chat_id, reply_to_message_id, role, status, revision, error, completed_at,
  created_at, updated_at) ON app.messages TO runner_report;
GRANT SELECT, INSERT, UPDATE, DELETE ON app.messages TO runner_scoped;

-- onboardings ─────────────────────────────────────────────────────────────────────────────────────────────────────────
-- How an organization is created: evidence, research, review, completion.
CREATE TABLE app.onboardings (
  organization_id uuid NOT NULL,                                  -- The organization it belongs to.
  status app.onboarding_status NOT NULL DEFAULT 'collecting',     -- Where it stands.
  generation integer NOT NULL DEFAULT 1,                          -- Rises with every change; calls say which one they have seen.
  setup jsonb NOT NULL,                                           -- Name, website, time zone, currency, departments, summary.
  integrations jsonb NOT NULL DEFAULT '[]',                       -- What was decided about each integration.
  chat_id uuid,                                                   -- Its chat.
  research_status app.research_status NOT NULL DEFAULT 'not_started',  -- How the research goes.
  research_generation integer,                                    -- The generation that the attempt began with.
  research_attempts integer NOT NULL DEFAULT 0,                   -- How often it was tried.
  research_started_at timestamptz,                                -- When the last attempt began.
  research_finished_at timestamptz,                               -- When it was over.
  research_error jsonb,                                           -- Why it failed.
  research_warnings jsonb NOT NULL DEFAULT '[]',                  -- What it could not do.
  review jsonb,                                                   -- What its owner confirms by the completion.
  created_at timestamptz NOT NULL DEFAULT now(),                  -- When it was made.
  updated_at timestamptz NOT NULL DEFAULT now(),                  -- When it was last changed.
  CONSTRAINT onboardings_pkey PRIMARY KEY (organization_id),
  CONSTRAINT onboardings_chat_id_fkey FOREIGN KEY (organization_id, chat_id) REFERENCES app.chats(organization_id, id) ON
    DELETE SET NULL (chat_id),
  CONSTRAINT onboardings_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES app.organizations(id) ON DELETE
    CASCADE,
  CONSTRAINT onboardings_generation_check CHECK ((generation >= 1)),
  CONSTRAINT onboardings_integrations_check CHECK ((jsonb_typeof(integrations) = 'array')),
  CONSTRAINT onboardings_research_attempts_check CHECK ((research_attempts >= 0)),
  CONSTRAINT onboardings_research_error_when_failed_check CHECK (((research_status = 'failed') = (research_error IS NOT
    NULL))),
  CONSTRAINT onboardings_research_failed_when_failed_check CHECK (((status <> 'research_failed') OR (research_status =
    'failed'))),
  CONSTRAINT onboardings_research_finished_at_when_over_check CHECK ((research_status IN ('completed', 'failed') =
    (research_finished_at IS NOT NULL))),
  CONSTRAINT onboardings_research_warnings_check CHECK ((jsonb_typeof(research_warnings) = 'array')),
  CONSTRAINT onboardings_research_when_researching_check CHECK ((((status = 'researching') = research_status IN ('queued',
    'running')) OR (status = 'discarded'))),
  CONSTRAINT onboardings_review_when_review_check CHECK (((status <> ALL (ARRAY['review', 'completed'])) OR (review IS NOT
    NULL))),
  CONSTRAINT onboardings_setup_check CHECK ((jsonb_typeof(setup) = 'object'))
);
-- Not sampled (SET STATISTICS 0): generation, setup, integrations, research_attempts, research_error,
-- research_warnings, review
CREATE INDEX onboardings_chat_id_idx ON app.onboardings USING btree (organization_id, chat_id);
ALTER TABLE app.onboardings ENABLE ROW LEVEL SECURITY;
ALTER TABLE app.onboardings FORCE ROW LEVEL SECURITY;
CREATE POLICY admin_read ON app.onboardings FOR SELECT TO runner_admin USING (((((SELECT app.current_organization()) IS
  NULL) OR (organization_id = (SELECT app.current_organization()))) AND (organization_id <> ALL ((SELECT
  app.organizations_deleted())::uuid[]))));
CREATE POLICY owner_all ON app.onboardings TO runner_owner USING (true) WITH CHECK (true);
CREATE POLICY report_read ON app.onboardings FOR SELECT TO runner_report USING ((app.report_shows(organization_id,
  (SELECT (pg_has_role(SESSION_USER, 'runner_report'::name, 'member') OR (EXISTS (SELECT FROM app.analysts a WHERE
  ((a.login = SESSION_USER) AND (a.login_oid = ((to_regrole(quote_ident(SESSION_USER)))::oid)::bigint) AND
  a.all_organizations))))), ARRAY(SELECT g.organization_id FROM app.analyst_grants g WHERE ((g.login = SESSION_USER) AND
  (g.login_oid = ((to_regrole(quote_ident(SESSION_USER)))::oid)::bigint)))) AND (organization_id = ANY (ARRAY(SELECT
  o.id FROM app.organizations o)))));
CREATE POLICY scoped_all ON app.onboardings TO runner_scoped USING ((organization_id = (SELECT
  app.current_organization()))) WITH CHECK ((organization_id = (SELECT app.current_organization())));
CREATE POLICY tenant_read ON app.onboardings FOR SELECT TO runner_api, runner_jobs USING ((organization_id = (SELECT
  app.current_organization())));
GRANT SELECT (organization_id, status, generation, setup, integrations, chat_id, research_status, research_generation,
  research_attempts, research_started_at, research_finished_at, research_error, research_warnings, review, created_at,
  updated_at) ON app.onboardings TO runner_admin;
GRANT SELECT ON app.onboardings TO runner_api, runner_jobs;
GRANT SELECT (organization_id, status, generation, research_status, research_attempts, research_started_at,
  research_finished_at, research_error, research_warnings, created_at, updated_at) ON app.onboardings TO runner_report;
GRANT SELECT, INSERT, UPDATE, DELETE ON app.onboardings TO runner_scoped;

-- organization_members ────────────────────────────────────────────────────────────────────────────────────────────────
-- Whose tokens reach an organization, where owners sign in with JWTs.
CREATE TABLE app.organization_members (
  organization_id uuid NOT NULL,                                  -- The organization it belongs to.
  subject text NOT NULL,                                          -- The `sub` of the token.
  role app.organization_member_role NOT NULL,                     -- viewers read only.
  created_at timestamptz NOT NULL DEFAULT now(),                  -- When it was made.
  updated_at timestamptz NOT NULL DEFAULT now(),                  -- When it was last changed.
  CONSTRAINT organization_members_pkey PRIMARY KEY (organization_id, subject),
  CONSTRAINT organization_members_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES app.organizations(id) ON
    DELETE CASCADE,
  CONSTRAINT organization_members_subject_check CHECK (((length(subject) >= 1) AND (length(subject) <= 255)))
);
CREATE INDEX organization_members_subject_idx ON app.organization_members USING btree (subject, organization_id);
ALTER TABLE app.organization_members ENABLE ROW LEVEL SECURITY;
ALTER TABLE app.organization_members FORCE ROW LEVEL SECURITY;
CREATE POLICY admin_read ON app.organization_members FOR SELECT TO runner_admin USING (((((SELECT
  app.current_organization()) IS NULL) OR (organization_id = (SELECT app.current_organization()))) AND (organization_id
  <> ALL ((SELECT app.organizations_deleted())::uuid[]))));
CREATE POLICY global_read ON app.organization_members FOR SELECT TO runner_global USING (true);
CREATE POLICY owner_all ON app.organization_members TO runner_owner USING (true) WITH CHECK (true);
CREATE POLICY scoped_all ON app.organization_members TO runner_scoped USING ((organization_id = (SELECT
  app.current_organization()))) WITH CHECK ((organization_id = (SELECT app.current_organization())));
CREATE POLICY tenant_read ON app.organization_members FOR SELECT TO runner_api USING ((organization_id = (SELECT
  app.current_organization())));
GRANT SELECT (organization_id, subject, role, created_at, updated_at) ON app.organization_members TO runner_admin;
GRANT SELECT ON app.organization_members TO runner_api, runner_global;
GRANT SELECT, INSERT, UPDATE, DELETE ON app.organization_members TO runner_scoped;

-- organizations ───────────────────────────────────────────────────────────────────────────────────────────────────────
-- Tenants. Everything else belongs to one of them.
CREATE TABLE app.organizations (
  id uuid NOT NULL,                                               -- Chosen by who creates it.
  slug text NOT NULL,                                             -- Stable name in addresses; unique among those that are not deleted.
  name text NOT NULL,                                             -- For people.
  status app.organization_status NOT NULL DEFAULT 'active',       -- onboarding: until its onboarding is completed. suspended: reads work, nothing is handed out.
  root_uri text NOT NULL,                                         -- Root of its memory, a logical address.
  config jsonb NOT NULL,                                          -- Time zone, departments, limits and root of storage.
  constraints jsonb NOT NULL,                                     -- Allowed integrations, blocked domains, and the risks that need an approval.
  authorization_epoch integer NOT NULL DEFAULT 1,                 -- Rises whenever what agents may do changes; their reads are fenced by it.
  onboarded_at timestamptz,                                       -- When its onboarding was completed.
  work_dispatch_stopped_at timestamptz,                           -- Since when its owner has stopped work dispatch; null otherwise.
  deleted_at timestamptz,                                         -- When it was deleted: hidden from then on, its rows are removed in the background.
  created_at timestamptz NOT NULL DEFAULT now(),                  -- When it was made.
  updated_at timestamptz NOT NULL DEFAULT now(),                  -- When it was last changed.
  CONSTRAINT organizations_pkey PRIMARY KEY (id),
  CONSTRAINT organizations_authorization_epoch_check CHECK ((authorization_epoch >= 1)),
  CONSTRAINT organizations_config_check CHECK ((jsonb_typeof(config) = 'object')),
  CONSTRAINT organizations_constraints_check CHECK ((jsonb_typeof(constraints) = 'object')),
  CONSTRAINT organizations_name_check CHECK (((length(name) >= 1) AND (length(name) <= 200))),
  CONSTRAINT organizations_slug_check CHECK (((slug ~ '^[a-z0-9]+(-[a-z0-9]+)*$') AND (length(slug) <= 63)))
);
-- Not sampled (SET STATISTICS 0): slug, name, config, constraints
CREATE INDEX organizations_created_at_idx ON app.organizations USING btree (created_at DESC, id DESC) WHERE (deleted_at
  IS NULL);
CREATE INDEX organizations_deleted_at_idx ON app.organizations USING btree (deleted_at) WHERE (deleted_at IS NOT NULL);
CREATE UNIQUE INDEX organizations_slug_idx ON app.organizations USING btree (slug) WHERE (deleted_at IS NULL);
ALTER TABLE app.organizations ENABLE ROW LEVEL SECURITY;
ALTER TABLE app.organizations FORCE ROW LEVEL SECURITY;
CREATE POLICY admin_read ON app.organizations FOR SELECT TO runner_admin USING (((deleted_at IS NULL) AND (((SELECT
  app.current_organization()) IS NULL) OR (id = (SELECT app.current_organization())))));
CREATE POLICY global_read ON app.organizations FOR SELECT TO runner_global USING (true);
CREATE POLICY owner_all ON app.organizations TO runner_owner USING (true) WITH CHECK (true);
CREATE POLICY report_read ON app.organizations FOR SELECT TO runner_report USING ((app.report_shows(id, (SELECT
  (pg_has_role(SESSION_USER, 'runner_report'::name, 'member') OR (EXISTS (SELECT FROM app.analysts a WHERE ((a.login =
  SESSION_USER) AND (a.login_oid = ((to_regrole(quote_ident(SESSION_USER)))::oid)::bigint) AND a.all_organizations))))),
  ARRAY(SELECT g.organization_id FROM app.analyst_grants g WHERE ((g.login = SESSION_USER) AND (g.login_oid =
  ((to_regrole(quote_ident(SESSION_USER)))::oid)::bigint)))) AND (deleted_at IS NULL)));
CREATE POLICY scoped_all ON app.organizations TO runner_scoped USING ((id = (SELECT app.current_organization()))) WITH
  CHECK ((id = (SELECT app.current_organization())));
CREATE POLICY tenant_read ON app.organizations FOR SELECT TO runner_api, runner_jobs USING (((id = (SELECT
  app.current_organization())) AND (deleted_at IS NULL)));
GRANT SELECT (id, slug, name, status, root_uri, config, constraints, authorization_epoch, onboarded_at,
  work_dispatch_stopped_at, deleted_at, created_at, updated_at) ON app.organizations TO runner_admin;
GRANT SELECT ON app.organizations TO runner_api, runner_global, runner_jobs;
GRANT SELECT (id, slug, name, status, config, onboarded_at, work_dispatch_stopped_at, deleted_at, created_at,
  updated_at) ON app.organizations TO runner_report;
GRANT SELECT, INSERT, UPDATE, DELETE ON app.organizations TO runner_scoped;

-- pull_gate ───────────────────────────────────────────────────────────────────────────────────────────────────────────
-- One row that pulls pass through one by one.
CREATE TABLE app.pull_gate (
  only_row boolean NOT NULL DEFAULT true,                         -- Always true.
  CONSTRAINT pull_gate_pkey PRIMARY KEY (only_row),
  CONSTRAINT pull_gate_only_row_check CHECK (only_row)
);
GRANT SELECT, UPDATE ON app.pull_gate TO runner_global;

-- rate_limit_buckets ──────────────────────────────────────────────────────────────────────────────────────────────────
-- Budgets of outgoing requests: of an account at a provider, and of our client there.
CREATE TABLE app.rate_limit_buckets (
  key text NOT NULL,                                              -- Whose budget; accounts by digest.
  full_at timestamptz NOT NULL,                                   -- When all of it is there again.
  retry_not_before timestamptz,                                   -- The provider asked not to be called before.
  CONSTRAINT rate_limit_buckets_pkey PRIMARY KEY (key),
  CONSTRAINT rate_limit_buckets_key_check CHECK (((length(key) >= 1) AND (length(key) <= 200)))
);
CREATE INDEX rate_limit_buckets_full_at_idx ON app.rate_limit_buckets USING btree (full_at);
GRANT SELECT, INSERT, UPDATE, DELETE ON app.rate_limit_buckets TO runner_global;

-- research_findings ───────────────────────────────────────────────────────────────────────────────────────────────────
-- Claims about an organization, and the sources that say so.
CREATE TABLE app.research_findings (
  organization_id uuid NOT NULL,                                  -- The organization it belongs to.
  id uuid NOT NULL DEFAULT app.uuid_v7(),                         -- Id of the finding.
  origin app.research_finding_origin NOT NULL,                    -- job: the research of the onboarding. chat: asked for in its chat.
  claim text NOT NULL,                                            -- What is claimed.
  source_ids jsonb NOT NULL,                                      -- The sources that say so.
  created_at timestamptz NOT NULL DEFAULT now(),                  -- When it was made.
  CONSTRAINT research_findings_pkey PRIMARY KEY (organization_id, id),
  CONSTRAINT research_findings_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES app.organizations(id) ON
    DELETE CASCADE,
  CONSTRAINT research_findings_claim_check CHECK (((length(claim) >= 1) AND (length(claim) <= 2000))),
  CONSTRAINT research_findings_source_ids_check CHECK (((jsonb_typeof(source_ids) = 'array') AND
    (jsonb_array_length(source_ids) > 0)))
);
-- Not sampled (SET STATISTICS 0): source_ids
CREATE INDEX research_findings_created_at_idx ON app.research_findings USING btree (organization_id, created_at, id);
ALTER TABLE app.research_findings ENABLE ROW LEVEL SECURITY;
ALTER TABLE app.research_findings FORCE ROW LEVEL SECURITY;
CREATE POLICY admin_read ON app.research_findings FOR SELECT TO runner_admin USING (((((SELECT
  app.current_organization()) IS NULL) OR (organization_id = (SELECT app.current_organization()))) AND (organization_id
  <> ALL ((SELECT app.organizations_deleted())::uuid[]))));
CREATE POLICY owner_all ON app.research_findings TO runner_owner USING (true) WITH CHECK (true);
CREATE POLICY report_read ON app.research_findings FOR SELECT TO runner_report USING ((app.report_shows(organization_id,
  (SELECT (pg_has_role(SESSION_USER, 'runner_report'::name, 'member') OR (EXISTS (SELECT FROM app.analysts a WHERE
  ((a.login = SESSION_USER) AND (a.login_oid = ((to_regrole(quote_ident(SESSION_USER)))::oid)::bigint) AND
  a.all_organizations))))), ARRAY(SELECT g.organization_id FROM app.analyst_grants g WHERE ((g.login = SESSION_USER) AND
  (g.login_oid = ((to_regrole(quote_ident(SESSION_USER)))::oid)::bigint)))) AND (organization_id = ANY (ARRAY(SELECT
  o.id FROM app.organizations o)))));
CREATE POLICY scoped_all ON app.research_findings TO runner_scoped USING ((organization_id = (SELECT
  app.current_organization()))) WITH CHECK ((organization_id = (SELECT app.current_organization())));
CREATE POLICY tenant_read ON app.research_findings FOR SELECT TO runner_api, runner_jobs USING ((organization_id =
  (SELECT app.current_organization())));
GRANT SELECT (organization_id, id, origin, claim, source_ids, created_at) ON app.research_findings TO runner_admin;
GRANT SELECT ON app.research_findings TO runner_api, runner_jobs;
GRANT SELECT (organization_id) ON app.research_findings TO runner_report;
GRANT SELECT, INSERT, UPDATE, DELETE ON app.research_findings TO runner_scoped;

-- run_inputs ──────────────────────────────────────────────────────────────────────────────────────────────────────────
-- What runs were given, fixed at their start.
CREATE TABLE app.run_inputs (
  organization_id uuid NOT NULL,                                  -- The organization it belongs to.
  run_id uuid NOT NULL,                                           -- The run.
  path text NOT NULL,                                             -- Where the run finds it.
  chat_id uuid,                                                   -- The chat whose attachment it is.
  role app.run_input_role NOT NULL,                               -- Whether it instructs or is material.
  media_type text NOT NULL,                                       -- Of the file.
  size bigint NOT NULL,                                           -- In bytes.
  sha256 text,                                                    -- SHA-256 of the bytes, in hex; null where they were not there.
  content text,                                                   -- The text itself, where it is short; never shown.
  storage_key text,                                               -- Where the bytes lie in the object storage; never shown.
  CONSTRAINT run_inputs_pkey PRIMARY KEY (organization_id, run_id, path),
  CONSTRAINT run_inputs_run_id_fkey FOREIGN KEY (organization_id, run_id) REFERENCES app.runs(organization_id, id) ON
    DELETE CASCADE,
  CONSTRAINT run_inputs_chat_id_when_stored_check CHECK (((chat_id IS NULL) OR (storage_key IS NOT NULL))),
  CONSTRAINT run_inputs_one_place_check CHECK (((content IS NULL) OR (storage_key IS NULL))),
  CONSTRAINT run_inputs_sha256_when_available_check CHECK (((sha256 IS NOT NULL) = ((content IS NOT NULL) OR (storage_key
    IS NOT NULL)))),
  CONSTRAINT run_inputs_size_check CHECK ((size >= 0))
);
CREATE INDEX run_inputs_chat_id_idx ON app.run_inputs USING btree (organization_id, chat_id) WHERE (chat_id IS NOT
  NULL);
ALTER TABLE app.run_inputs ENABLE ROW LEVEL SECURITY;
ALTER TABLE app.run_inputs FORCE ROW LEVEL SECURITY;
CREATE POLICY admin_read ON app.run_inputs FOR SELECT TO runner_admin USING (((((SELECT app.current_organization()) IS
  NULL) OR (organization_id = (SELECT app.current_organization()))) AND (organization_id <> ALL ((SELECT
  app.organizations_deleted())::uuid[]))));
CREATE POLICY owner_all ON app.run_inputs TO runner_owner USING (true) WITH CHECK (true);
CREATE POLICY scoped_all ON app.run_inputs TO runner_scoped USING ((organization_id = (SELECT
  app.current_organization()))) WITH CHECK ((organization_id = (SELECT app.current_organization())));
CREATE POLICY tenant_read ON app.run_inputs FOR SELECT TO runner_api USING ((organization_id = (SELECT
  app.current_organization())));
GRANT SELECT (organization_id, run_id, path, chat_id, role, media_type, size, sha256) ON app.run_inputs TO runner_admin;
GRANT SELECT ON app.run_inputs TO runner_api;
GRANT SELECT, INSERT, UPDATE, DELETE ON app.run_inputs TO runner_scoped;

-- run_logs ────────────────────────────────────────────────────────────────────────────────────────────────────────────
-- What runs say of themselves: safe technical metadata.
CREATE TABLE app.run_logs (
  organization_id uuid NOT NULL,                                  -- The organization it belongs to.
  run_id uuid NOT NULL,                                           -- The run.
  sequence bigint NOT NULL,                                       -- The place in its log.
  category app.run_log_category NOT NULL,                         -- What it is about.
  status app.run_log_status NOT NULL,                             -- How it went.
  label text NOT NULL,                                            -- In short, one line.
  detail text NOT NULL,                                           -- Some more, one line.
  occurred_at timestamptz NOT NULL,                               -- When it happened, as the worker says.
  CONSTRAINT run_logs_pkey PRIMARY KEY (organization_id, run_id, sequence),
  CONSTRAINT run_logs_run_id_fkey FOREIGN KEY (organization_id, run_id) REFERENCES app.runs(organization_id, id) ON DELETE
    CASCADE,
  CONSTRAINT run_logs_row_check CHECK (app.run_logs_check(run_logs.*))
);
-- The rules of app.run_logs_check:
-- when not length(r.detail) <= 2000 then 'run_logs_detail_check'
-- when not length(r.label) between 1 and 200 then 'run_logs_label_check'
-- when not r.sequence >= 0 then 'run_logs_sequence_check'
ALTER TABLE app.run_logs ENABLE ROW LEVEL SECURITY;
ALTER TABLE app.run_logs FORCE ROW LEVEL SECURITY;
CREATE POLICY admin_read ON app.run_logs FOR SELECT TO runner_admin USING (((((SELECT app.current_organization()) IS
  NULL) OR (organization_id = (SELECT app.current_organization()))) AND (organization_id <> ALL ((SELECT
  app.organizations_deleted())::uuid[]))));
CREATE POLICY owner_all ON app.run_logs TO runner_owner USING (true) WITH CHECK (true);
CREATE POLICY report_read ON app.run_logs FOR SELECT TO runner_report USING ((app.report_shows(organization_id, (SELECT
  (pg_has_role(SESSION_USER, 'runner_report'::name, 'member') OR (EXISTS (SELECT FROM app.analysts a WHERE ((a.login =
  SESSION_USER) AND (a.login_oid = ((to_regrole(quote_ident(SESSION_USER)))::oid)::bigint) AND a.all_organizations))))),
  ARRAY(SELECT g.organization_id FROM app.analyst_grants g WHERE ((g.login = SESSION_USER) AND (g.login_oid =
  ((to_regrole(quote_ident(SESSION_USER)))::oid)::bigint)))) AND (organization_id = ANY (ARRAY(SELECT o.id FROM
  app.organizations o)))));
CREATE POLICY scoped_all ON app.run_logs TO runner_scoped USING ((organization_id = (SELECT
  app.current_organization()))) WITH CHECK ((organization_id = (SELECT app.current_organization())));
CREATE POLICY tenant_read ON app.run_logs FOR SELECT TO runner_api USING ((organization_id = (SELECT
  app.current_organization())));
GRANT SELECT (organization_id, run_id, sequence, category, status, label, detail, occurred_at) ON app.run_logs TO
  runner_admin;
GRANT SELECT ON app.run_logs TO runner_api;
GRANT SELECT (organization_id, run_id, sequence, category, status, occurred_at) ON app.run_logs TO runner_report;
GRANT SELECT, INSERT, UPDATE, DELETE ON app.run_logs TO runner_scoped;

-- run_outputs ─────────────────────────────────────────────────────────────────────────────────────────────────────────
-- Files that runs made.
CREATE TABLE app.run_outputs (
  organization_id uuid NOT NULL,                                  -- The organization it belongs to.
  run_id uuid NOT NULL,                                           -- The run.
  path text NOT NULL,                                             -- Where the run put it.
  layout_key text NOT NULL,                                       -- The path without case and normalization: files of one key are one file on many file systems.
  storage_key text NOT NULL,                                      -- Where the bytes lie in the object storage; never shown.
  size bigint NOT NULL,                                           -- In bytes.
  sha256 text NOT NULL,                                           -- SHA-256 of the bytes, in hex.
  media_type text NOT NULL,                                       -- As its content says.
  created_at timestamptz NOT NULL DEFAULT now(),                  -- When it was made.
  CONSTRAINT run_outputs_pkey PRIMARY KEY (organization_id, run_id, path),
  CONSTRAINT run_outputs_run_id_fkey FOREIGN KEY (organization_id, run_id) REFERENCES app.runs(organization_id, id) ON
    DELETE CASCADE,
  CONSTRAINT run_outputs_path_check CHECK (((length(path) >= 1) AND (length(path) <= 1024))),
  CONSTRAINT run_outputs_sha256_check CHECK ((sha256 ~ '^[0-9a-f]{64}$')),
  CONSTRAINT run_outputs_size_check CHECK ((size >= 0))
);
ALTER TABLE app.run_outputs ENABLE ROW LEVEL SECURITY;
ALTER TABLE app.run_outputs FORCE ROW LEVEL SECURITY;
CREATE POLICY admin_read ON app.run_outputs FOR SELECT TO runner_admin USING (((((SELECT app.current_organization()) IS
  NULL) OR (organization_id = (SELECT app.current_organization()))) AND (organization_id <> ALL ((SELECT
  app.organizations_deleted())::uuid[]))));
CREATE POLICY owner_all ON app.run_outputs TO runner_owner USING (true) WITH CHECK (true);
CREATE POLICY scoped_all ON app.run_outputs TO runner_scoped USING ((organization_id = (SELECT
  app.current_organization()))) WITH CHECK ((organization_id = (SELECT app.current_organization())));
CREATE POLICY tenant_read ON app.run_outputs FOR SELECT TO runner_api USING ((organization_id = (SELECT
  app.current_organization())));
GRANT SELECT (organization_id, run_id, path, size, sha256, media_type, created_at) ON app.run_outputs TO runner_admin;
GRANT SELECT ON app.run_outputs TO runner_api;
GRANT SELECT, INSERT, UPDATE, DELETE ON app.run_outputs TO runner_scoped;

-- run_requests ────────────────────────────────────────────────────────────────────────────────────────────────────────
-- What waits for a worker: one for each phase of a task, and one for each reply in a chat.
CREATE TABLE app.run_requests (
  organization_id uuid NOT NULL,                                  -- The organization it belongs to.
  id uuid NOT NULL DEFAULT app.uuid_v7(),                         -- Id of the request.
  task_id uuid,                                                   -- The task.
  chat_id uuid,                                                   -- The chat of a turn.
  message_id uuid,                                                -- The reply that a turn writes.
  agent_profile_id uuid NOT NULL,                                 -- Who runs it.
  run_id uuid,                                                    -- The last run of it.
  staged_run_id uuid,                                             -- A run with a staged outcome or question, which its end applies.
  kind app.run_kind NOT NULL,                                     -- A task, or a reply in a chat.
  mode app.run_mode NOT NULL,                                     -- What the run does.
  state app.run_request_state NOT NULL,                           -- queued: not due, or dispatch is stopped. published: a worker may take it. leased: handed to one. started: a run holds the lease. finished and cancelled: over.
  parked boolean NOT NULL DEFAULT false,                          -- Queued because work dispatch is stopped.
  priority integer NOT NULL DEFAULT 0,                            -- Higher goes first.
  worker_id text,                                                 -- Who holds it, as the worker calls itself.
  lease_secret_hash bytea,                                        -- Digest of the secret of the lease; never shown.
  lease_expires_at timestamptz,                                   -- When the lease ends without a heartbeat.
  execution_token_hash text,                                      -- Digest of the capability of the last start; never shown.
  attempt integer NOT NULL DEFAULT 0,                             -- Starts so far.
  fence bigint NOT NULL DEFAULT 0,                                -- Rises with every claim: an older lease never fits again.
  due_at timestamptz NOT NULL DEFAULT now(),                      -- When it may be published.
  published_at timestamptz,                                       -- Since when workers may take it.
  cancel_requested_at timestamptz,                                -- It was cancelled while a worker held it, and holds its slot until that one reports.
  finished_at timestamptz,                                        -- When it was over.
  created_at timestamptz NOT NULL DEFAULT now(),                  -- When it was made.
  CONSTRAINT run_requests_pkey PRIMARY KEY (organization_id, id),
  CONSTRAINT run_requests_agent_profile_id_fkey FOREIGN KEY (organization_id, agent_profile_id) REFERENCES
    app.agent_profiles(organization_id, id),
  CONSTRAINT run_requests_message_id_fkey FOREIGN KEY (organization_id, message_id) REFERENCES
    app.messages(organization_id, id) ON DELETE CASCADE,
  CONSTRAINT run_requests_task_id_fkey FOREIGN KEY (organization_id, task_id) REFERENCES app.tasks(organization_id, id) ON
    DELETE CASCADE,
  CONSTRAINT run_requests_row_check CHECK (app.run_requests_check(run_requests.*))
) WITH (fillfactor=80, autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=2000, autovacuum_vacuum_cost_delay=0);
-- The rules of app.run_requests_check:
-- when not (r.cancel_requested_at is null or r.state in ('started', 'cancelled'))
--   then 'run_requests_cancel_requested_when_started_check'
-- when not ((r.kind = 'chat') = (r.message_id is not null) and (r.chat_id is null) = (r.message_id is null))
--   then 'run_requests_chat_when_chat_check'
-- when not (r.attempt >= 0 and r.fence >= 0) then 'run_requests_counters_check'
-- when not ((r.state in ('finished', 'cancelled')) = (r.finished_at is not null))
--   then 'run_requests_finished_at_when_over_check'
-- when not ((r.state in ('leased', 'started')) = (r.lease_expires_at is not null)
--   and (r.lease_expires_at is null) = (r.lease_secret_hash is null)) then 'run_requests_lease_when_held_check'
-- when not (not r.parked or r.state = 'queued') then 'run_requests_parked_when_queued_check'
-- when not (r.state <> 'published' or r.published_at is not null) then 'run_requests_published_at_check'
-- when not (r.state <> 'started' or r.run_id is not null and r.execution_token_hash is not null)
--   then 'run_requests_run_when_started_check'
-- when not ((r.kind = 'task') = (r.task_id is not null)) then 'run_requests_task_when_task_check'
-- Not sampled (SET STATISTICS 0): priority, lease_secret_hash
CREATE INDEX run_requests_agent_profile_id_idx ON app.run_requests USING btree (organization_id, agent_profile_id);
CREATE INDEX run_requests_all_created_at_idx ON app.run_requests USING btree (created_at, id);
CREATE INDEX run_requests_chat_waiting_idx ON app.run_requests USING btree (created_at) WHERE ((kind = 'chat') AND state
  IN ('published', 'leased'));
CREATE INDEX run_requests_chat_waiting_turns_idx ON app.run_requests USING btree (organization_id, created_at) WHERE
  ((kind = 'chat') AND state IN ('published', 'leased'));
CREATE INDEX run_requests_created_at_idx ON app.run_requests USING btree (organization_id, created_at, id);
CREATE INDEX run_requests_due_idx ON app.run_requests USING btree (due_at) WHERE ((state = 'queued') AND (NOT parked));
CREATE INDEX run_requests_due_turns_idx ON app.run_requests USING btree (organization_id, due_at) WHERE ((state =
  'queued') AND (NOT parked));
CREATE INDEX run_requests_execution_token_hash_idx ON app.run_requests USING btree (execution_token_hash,
  organization_id) WHERE (state = 'started');
CREATE INDEX run_requests_held_idx ON app.run_requests USING btree (organization_id, agent_profile_id) WHERE state IN
  ('leased', 'started');
CREATE UNIQUE INDEX run_requests_live_task_idx ON app.run_requests USING btree (organization_id, task_id) WHERE (state
  IN ('queued', 'published', 'leased', 'started') AND (cancel_requested_at IS NULL) AND (task_id IS NOT NULL));
CREATE UNIQUE INDEX run_requests_message_id_idx ON app.run_requests USING btree (organization_id, message_id) WHERE
  (message_id IS NOT NULL);
CREATE INDEX run_requests_parked_idx ON app.run_requests USING btree (organization_id, due_at) WHERE ((state = 'queued')
  AND parked);
CREATE INDEX run_requests_published_at_idx ON app.run_requests USING btree (kind, published_at) WHERE (state =
  'published');
CREATE INDEX run_requests_ready_idx ON app.run_requests USING btree (organization_id, agent_profile_id, kind, priority
  DESC, published_at, id) WHERE (state = 'published');
CREATE INDEX run_requests_task_id_idx ON app.run_requests USING btree (organization_id, task_id, created_at) WHERE
  (task_id IS NOT NULL);
CREATE CONSTRAINT TRIGGER run_requests_count_insert AFTER INSERT ON app.run_requests DEFERRABLE INITIALLY DEFERRED FOR
  EACH ROW WHEN (new.state IN ('published', 'leased', 'started')) EXECUTE FUNCTION app.run_requests_count();
CREATE CONSTRAINT TRIGGER run_requests_count_update AFTER UPDATE OF state ON app.run_requests DEFERRABLE INITIALLY
  DEFERRED FOR EACH ROW WHEN (app.run_requests_counts(old.state, new.state)) EXECUTE FUNCTION app.run_requests_count();
CREATE TRIGGER run_requests_wake_insert AFTER INSERT ON app.run_requests FOR EACH ROW EXECUTE FUNCTION
  app.run_requests_wake();
CREATE TRIGGER run_requests_wake_stop AFTER UPDATE OF cancel_requested_at ON app.run_requests FOR EACH ROW EXECUTE
  FUNCTION app.run_requests_wake_stop();
CREATE TRIGGER run_requests_wake_update AFTER UPDATE OF state ON app.run_requests FOR EACH ROW WHEN
  (app.run_requests_counts(old.state, new.state)) EXECUTE FUNCTION app.run_requests_wake();
ALTER TABLE app.run_requests ENABLE ROW LEVEL SECURITY;
ALTER TABLE app.run_requests FORCE ROW LEVEL SECURITY;
CREATE POLICY admin_read ON app.run_requests FOR SELECT TO runner_admin USING (((((SELECT app.current_organization()) IS
  NULL) OR (organization_id = (SELECT app.current_organization()))) AND (organization_id <> ALL ((SELECT
  app.organizations_deleted())::uuid[]))));
CREATE POLICY global_all ON app.run_requests TO runner_global USING (true) WITH CHECK (true);
CREATE POLICY owner_all ON app.run_requests TO runner_owner USING (true) WITH CHECK (true);
CREATE POLICY report_read ON app.run_requests FOR SELECT TO runner_report USING ((app.report_shows(organization_id,
  (SELECT (pg_has_role(SESSION_USER, 'runner_report'::name, 'member') OR (EXISTS (SELECT FROM app.analysts a WHERE
  ((a.login = SESSION_USER) AND (a.login_oid = ((to_regrole(quote_ident(SESSION_USER)))::oid)::bigint) AND
  a.all_organizations))))), ARRAY(SELECT g.organization_id FROM app.analyst_grants g WHERE ((g.login = SESSION_USER) AND
  (g.login_oid = ((to_regrole(quote_ident(SESSION_USER)))::oid)::bigint)))) AND (organization_id = ANY (ARRAY(SELECT
  o.id FROM app.organizations o)))));
CREATE POLICY scoped_all ON app.run_requests TO runner_scoped USING ((organization_id = (SELECT
  app.current_organization()))) WITH CHECK ((organization_id = (SELECT app.current_organization())));
CREATE POLICY tenant_read ON app.run_requests FOR SELECT TO runner_api, runner_jobs USING ((organization_id = (SELECT
  app.current_organization())));
GRANT SELECT (organization_id, id, task_id, chat_id, message_id, agent_profile_id, run_id, kind, mode, state, parked,
  priority, worker_id, lease_expires_at, attempt, fence, due_at, published_at, cancel_requested_at, finished_at,
  created_at) ON app.run_requests TO runner_admin, runner_api, runner_jobs;
GRANT SELECT, UPDATE ON app.run_requests TO runner_global;
GRANT SELECT (organization_id, id, task_id, chat_id, message_id, agent_profile_id, kind, mode, state, parked, priority,
  attempt, due_at, published_at, cancel_requested_at, finished_at, created_at) ON app.run_requests TO runner_report;
GRANT SELECT, INSERT, UPDATE, DELETE ON app.run_requests TO runner_scoped;

-- runs ────────────────────────────────────────────────────────────────────────────────────────────────────────────────
-- Attempts of workers at run requests.
CREATE TABLE app.runs (
  organization_id uuid NOT NULL,                                  -- The organization it belongs to.
  id uuid NOT NULL,                                               -- Chosen by the worker.
  run_request_id uuid NOT NULL,                                   -- What it is an attempt at.
  task_id uuid,                                                   -- The task.
  chat_id uuid,                                                   -- The chat of a turn.
  message_id uuid,                                                -- The reply that a turn writes.
  agent_profile_id uuid NOT NULL,                                 -- Who runs.
  kind app.run_kind NOT NULL,                                     -- Of a task, or a chat turn.
  mode app.run_mode NOT NULL,                                     -- What it does.
  status app.run_status NOT NULL,                                 -- starting and running are active, the others are over.
  attempt integer NOT NULL,                                       -- Which start of its request.
  fence bigint NOT NULL,                                          -- The lease under which it was started.
  lease_secret_hash bytea NOT NULL,                               -- Digest of the secret of that lease; never shown.
  worker_id text NOT NULL,                                        -- Who ran it, as the worker calls itself.
  harness text,                                                   -- What the agent ran in.
  model text,                                                     -- The model that was used.
  workspace_uri text,                                             -- Where the worker worked, as it says.
  log_state app.run_log_state NOT NULL DEFAULT 'not_recorded',    -- Whether its logs are complete.
  log_count integer NOT NULL DEFAULT 0,                           -- Entries of its log.
  output jsonb,                                                   -- What it returned.
  error jsonb,                                                    -- Why it failed.
  receipts jsonb,                                                 -- Commands that the worker ran, as digests.
  spend_limited boolean NOT NULL DEFAULT false,                   -- Whether something in the hierarchy of its task has a spend limit.
  input_tokens bigint NOT NULL DEFAULT 0,                         -- Tokens it read.
  output_tokens bigint NOT NULL DEFAULT 0,                        -- Tokens it wrote.
  tool_calls bigint NOT NULL DEFAULT 0,                           -- Calls of tools.
  cost_minor_units bigint NOT NULL DEFAULT 0,                     -- What it cost, in minor units.
  cost_known boolean NOT NULL DEFAULT false,                      -- Whether the worker said what it cost.
  finish_call app.run_finish_call,                                -- The call that ended it.
  finish_hash text,                                               -- Digest of that call: a repeat gets the same response.
  started_at timestamptz NOT NULL DEFAULT now(),                  -- When it started.
  finished_at timestamptz,                                        -- When it was over.
  created_at timestamptz NOT NULL DEFAULT now(),                  -- When it was made.
  updated_at timestamptz NOT NULL DEFAULT now(),                  -- When it was last changed.
  CONSTRAINT runs_pkey PRIMARY KEY (organization_id, id),
  CONSTRAINT runs_run_request_id_attempt_key UNIQUE (organization_id, run_request_id, attempt),
  CONSTRAINT runs_run_request_id_fkey FOREIGN KEY (organization_id, run_request_id) REFERENCES
    app.run_requests(organization_id, id) ON DELETE CASCADE,
  CONSTRAINT runs_row_check CHECK (app.runs_check(runs.*))
) WITH (fillfactor=80);
-- The rules of app.runs_check:
-- when not ((r.kind = 'chat') = (r.message_id is not null) and (r.chat_id is null) = (r.message_id is null))
--   then 'runs_chat_when_chat_check'
-- when not (r.attempt >= 1 and r.log_count >= 0 and r.input_tokens >= 0 and r.output_tokens >= 0 and r.tool_calls >= 0
--   and r.cost_minor_units >= 0) then 'runs_counters_check'
-- when not ((r.finish_call is null) = (r.finish_hash is null)) then 'runs_finish_check'
-- when not ((r.status in ('starting', 'running')) = (r.finished_at is null)) then 'runs_finished_at_when_over_check'
-- when not ((r.kind = 'task') = (r.task_id is not null)) then 'runs_task_when_task_check'
-- Not sampled (SET STATISTICS 0): lease_secret_hash, worker_id, harness, model, log_count, output, error, receipts,
-- input_tokens, output_tokens, tool_calls, cost_minor_units
CREATE UNIQUE INDEX runs_active_task_idx ON app.runs USING btree (organization_id, task_id) WHERE (status IN
  ('starting', 'running') AND (task_id IS NOT NULL));
CREATE INDEX runs_agent_profile_id_idx ON app.runs USING btree (organization_id, agent_profile_id, created_at, id,
  kind);
CREATE INDEX runs_all_created_at_idx ON app.runs USING btree (created_at, id);
CREATE INDEX runs_created_at_idx ON app.runs USING btree (organization_id, created_at, id, kind);
CREATE INDEX runs_status_idx ON app.runs USING btree (organization_id, status, created_at, id, kind);
CREATE INDEX runs_task_id_idx ON app.runs USING btree (organization_id, task_id, created_at, id) WHERE (task_id IS NOT
  NULL);
ALTER TABLE app.runs ENABLE ROW LEVEL SECURITY;
ALTER TABLE app.runs FORCE ROW LEVEL SECURITY;
CREATE POLICY admin_read ON app.runs FOR SELECT TO runner_admin USING (((((SELECT app.current_organization()) IS NULL)
  OR (organization_id = (SELECT app.current_organization()))) AND (organization_id <> ALL ((SELECT
  app.organizations_deleted())::uuid[]))));
CREATE POLICY global_read ON app.runs FOR SELECT TO runner_global USING (true);
CREATE POLICY owner_all ON app.runs TO runner_owner USING (true) WITH CHECK (true);
CREATE POLICY report_read ON app.runs FOR SELECT TO runner_report USING ((app.report_shows(organization_id, (SELECT
  (pg_has_role(SESSION_USER, 'runner_report'::name, 'member') OR (EXISTS (SELECT FROM app.analysts a WHERE ((a.login =
  SESSION_USER) AND (a.login_oid = ((to_regrole(quote_ident(SESSION_USER)))::oid)::bigint) AND a.all_organizations))))),
  ARRAY(SELECT g.organization_id FROM app.analyst_grants g WHERE ((g.login = SESSION_USER) AND (g.login_oid =
  ((to_regrole(quote_ident(SESSION_USER)))::oid)::bigint)))) AND (organization_id = ANY (ARRAY(SELECT o.id FROM
  app.organizations o)))));
CREATE POLICY scoped_all ON app.runs TO runner_scoped USING ((organization_id = (SELECT app.current_organization())))
  WITH CHECK ((organization_id = (SELECT app.current_organization())));
CREATE POLICY tenant_read ON app.runs FOR SELECT TO runner_api, runner_jobs USING ((organization_id = (SELECT
  app.current_organization())));
GRANT SELECT (organization_id, id, run_request_id, task_id, chat_id, message_id, agent_profile_id, kind, mode, status,
  attempt, worker_id, harness, model, log_state, log_count, output, error, receipts, input_tokens, output_tokens,
  tool_calls, cost_minor_units, cost_known, started_at, finished_at, created_at, updated_at) ON app.runs TO
  runner_admin;
GRANT SELECT (organization_id, id, run_request_id, task_id, chat_id, message_id, agent_profile_id, kind, mode, status,
  attempt, worker_id, harness, model, workspace_uri, log_state, log_count, output, error, receipts, input_tokens,
  output_tokens, tool_calls, cost_minor_units, cost_known, started_at, finished_at, created_at, updated_at) ON app.runs
  TO runner_api, runner_jobs;
GRANT SELECT (organization_id, id, task_id, mode, status, error, created_at) ON app.runs TO runner_global;
GRANT SELECT (organization_id, id, run_request_id, task_id, chat_id, message_id, agent_profile_id, kind, mode, status,
  attempt, worker_id, harness, model, log_state, log_count, output, error, input_tokens, output_tokens, tool_calls,
  cost_minor_units, cost_known, started_at, finished_at, created_at) ON app.runs TO runner_report;
GRANT SELECT, INSERT, UPDATE, DELETE ON app.runs TO runner_scoped;

-- schedules ───────────────────────────────────────────────────────────────────────────────────────────────────────────
-- Tasks made by the clock.
CREATE TABLE app.schedules (
  organization_id uuid NOT NULL,                                  -- The organization it belongs to.
  id uuid NOT NULL DEFAULT app.uuid_v7(),                         -- Id of the schedule.
  key text NOT NULL,                                              -- Stable name; unique in the organization.
  title text NOT NULL,                                            -- For people.
  cron text NOT NULL,                                             -- When it fires, in five fields.
  timezone text NOT NULL,                                         -- The IANA zone of those fields.
  status app.schedule_status NOT NULL DEFAULT 'active',           -- paused: it does not fire, and nothing is made up for.
  task_template jsonb NOT NULL,                                   -- The task that a fire makes.
  overlap app.schedule_overlap NOT NULL DEFAULT 'skip',           -- skip: no task while one of its tasks is open.
  version integer NOT NULL DEFAULT 1,                             -- Raised by every change of what it is: not by fires, pauses and resumes.
  next_run_at timestamptz,                                        -- When it fires next; null while it is paused.
  last_run_at timestamptz,                                        -- When it fired last.
  last_task_id uuid,                                              -- The task it made last.
  failing_since timestamptz,                                      -- Since when its fires can make no task.
  created_at timestamptz NOT NULL DEFAULT now(),                  -- When it was made.
  updated_at timestamptz NOT NULL DEFAULT now(),                  -- When it was last changed.
  CONSTRAINT schedules_pkey PRIMARY KEY (organization_id, id),
  CONSTRAINT schedules_key_key UNIQUE (organization_id, key),
  CONSTRAINT schedules_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES app.organizations(id) ON DELETE
    CASCADE,
  CONSTRAINT schedules_key_check CHECK (((length(key) >= 1) AND (length(key) <= 63))),
  CONSTRAINT schedules_last_task_when_run_check CHECK (((last_task_id IS NULL) OR (last_run_at IS NOT NULL))),
  CONSTRAINT schedules_next_run_at_when_active_check CHECK (((status = 'active') = (next_run_at IS NOT NULL))),
  CONSTRAINT schedules_task_template_check CHECK ((jsonb_typeof(task_template) = 'object')),
  CONSTRAINT schedules_title_check CHECK (((length(title) >= 1) AND (length(title) <= 200))),
  CONSTRAINT schedules_version_check CHECK ((version >= 1))
) WITH (fillfactor=80);
-- Not sampled (SET STATISTICS 0): key, title, cron, timezone, task_template
CREATE INDEX schedules_created_at_idx ON app.schedules USING btree (organization_id, created_at, id);
CREATE INDEX schedules_next_run_at_idx ON app.schedules USING btree (next_run_at) WHERE (next_run_at IS NOT NULL);
CREATE INDEX schedules_next_run_at_turns_idx ON app.schedules USING btree (organization_id, next_run_at) WHERE
  (next_run_at IS NOT NULL);
ALTER TABLE app.schedules ENABLE ROW LEVEL SECURITY;
ALTER TABLE app.schedules FORCE ROW LEVEL SECURITY;
CREATE POLICY admin_read ON app.schedules FOR SELECT TO runner_admin USING (((((SELECT app.current_organization()) IS
  NULL) OR (organization_id = (SELECT app.current_organization()))) AND (organization_id <> ALL ((SELECT
  app.organizations_deleted())::uuid[]))));
CREATE POLICY global_read ON app.schedules FOR SELECT TO runner_global USING (true);
CREATE POLICY owner_all ON app.schedules TO runner_owner USING (true) WITH CHECK (true);
CREATE POLICY report_read ON app.schedules FOR SELECT TO runner_report USING ((app.report_shows(organization_id, (SELECT
  (pg_has_role(SESSION_USER, 'runner_report'::name, 'member') OR (EXISTS (SELECT FROM app.analysts a WHERE ((a.login =
  SESSION_USER) AND (a.login_oid = ((to_regrole(quote_ident(SESSION_USER)))::oid)::bigint) AND a.all_organizations))))),
  ARRAY(SELECT g.organization_id FROM app.analyst_grants g WHERE ((g.login = SESSION_USER) AND (g.login_oid =
  ((to_regrole(quote_ident(SESSION_USER)))::oid)::bigint)))) AND (organization_id = ANY (ARRAY(SELECT o.id FROM
  app.organizations o)))));
CREATE POLICY scoped_all ON app.schedules TO runner_scoped USING ((organization_id = (SELECT
  app.current_organization()))) WITH CHECK ((organization_id = (SELECT app.current_organization())));
CREATE POLICY tenant_read ON app.schedules FOR SELECT TO runner_api, runner_jobs USING ((organization_id = (SELECT
  app.current_organization())));
GRANT SELECT (organization_id, id, key, title, cron, timezone, status, task_template, overlap, version, next_run_at,
  last_run_at, last_task_id, failing_since, created_at, updated_at) ON app.schedules TO runner_admin;
GRANT SELECT ON app.schedules TO runner_api, runner_global, runner_jobs;
GRANT SELECT (organization_id, id, key, title, cron, timezone, status, overlap, next_run_at, last_run_at, last_task_id,
  failing_since, created_at, updated_at) ON app.schedules TO runner_report;
GRANT SELECT, INSERT, UPDATE, DELETE ON app.schedules TO runner_scoped;

-- schema_files ────────────────────────────────────────────────────────────────────────────────────────────────────────
-- Files that are applied whenever their text changes, as they were applied last.
-- Belongs to the migrating login.
CREATE TABLE app.schema_files (
  path text NOT NULL,                                             -- The file, below the folder sql.
  sha256 text NOT NULL,                                           -- Digest of its text.
  functions text[] NOT NULL,                                      -- The functions that it made.
  CONSTRAINT schema_files_pkey PRIMARY KEY (path)
);

-- schema_migrations ───────────────────────────────────────────────────────────────────────────────────────────────────
-- Migrations that were applied.
-- Belongs to the migrating login.
CREATE TABLE app.schema_migrations (
  version integer NOT NULL,                                       -- Its number.
  name text NOT NULL,                                             -- Its name.
  sha256 text NOT NULL,                                           -- Digest of its text, which never changes.
  applied_at timestamptz NOT NULL DEFAULT clock_timestamp(),      -- When it was applied.
  CONSTRAINT schema_migrations_pkey PRIMARY KEY (version)
);
GRANT SELECT ON app.schema_migrations TO runner_admin, runner_api, runner_jobs;

-- task_dependencies ───────────────────────────────────────────────────────────────────────────────────────────────────
-- Which task waits for which.
CREATE TABLE app.task_dependencies (
  organization_id uuid NOT NULL,                                  -- The organization it belongs to.
  id uuid NOT NULL DEFAULT app.uuid_v7(),                         -- Id of the edge.
  task_id uuid NOT NULL,                                          -- The task that waits.
  depends_on_task_id uuid NOT NULL,                               -- What it waits for.
  root_task_id uuid NOT NULL,                                     -- Root of the task that waits.
  depends_on_root_task_id uuid NOT NULL,                          -- Root of what it waits for.
  required boolean NOT NULL DEFAULT true,                         -- Whether it waits until the other is completed, or only comes after it.
  created_at timestamptz NOT NULL DEFAULT now(),                  -- When it was made.
  CONSTRAINT task_dependencies_pkey PRIMARY KEY (organization_id, id),
  CONSTRAINT task_dependencies_task_id_depends_on_task_id_key UNIQUE (organization_id, task_id, depends_on_task_id),
  CONSTRAINT task_dependencies_depends_on_task_id_fkey FOREIGN KEY (organization_id, depends_on_task_id) REFERENCES
    app.tasks(organization_id, id) ON DELETE CASCADE,
  CONSTRAINT task_dependencies_task_id_fkey FOREIGN KEY (organization_id, task_id) REFERENCES app.tasks(organization_id,
    id) ON DELETE CASCADE,
  CONSTRAINT task_dependencies_no_loop_check CHECK ((task_id <> depends_on_task_id))
);
CREATE INDEX task_dependencies_created_at_idx ON app.task_dependencies USING btree (organization_id, task_id,
  created_at, id);
CREATE INDEX task_dependencies_depends_on_root_task_id_idx ON app.task_dependencies USING btree (organization_id,
  depends_on_root_task_id, root_task_id) WHERE (root_task_id <> depends_on_root_task_id);
CREATE INDEX task_dependencies_depends_on_task_id_idx ON app.task_dependencies USING btree (organization_id,
  depends_on_task_id, task_id);
ALTER TABLE app.task_dependencies ENABLE ROW LEVEL SECURITY;
ALTER TABLE app.task_dependencies FORCE ROW LEVEL SECURITY;
CREATE POLICY admin_read ON app.task_dependencies FOR SELECT TO runner_admin USING (((((SELECT
  app.current_organization()) IS NULL) OR (organization_id = (SELECT app.current_organization()))) AND (organization_id
  <> ALL ((SELECT app.organizations_deleted())::uuid[]))));
CREATE POLICY owner_all ON app.task_dependencies TO runner_owner USING (true) WITH CHECK (true);
CREATE POLICY report_read ON app.task_dependencies FOR SELECT TO runner_report USING ((app.report_shows(organization_id,
  (SELECT (pg_has_role(SESSION_USER, 'runner_report'::name, 'member') OR (EXISTS (SELECT FROM app.analysts a WHERE
  ((a.login = SESSION_USER) AND (a.login_oid = ((to_regrole(quote_ident(SESSION_USER)))::oid)::bigint) AND
  a.all_organizations))))), ARRAY(SELECT g.organization_id FROM app.analyst_grants g WHERE ((g.login = SESSION_USER) AND
  (g.login_oid = ((to_regrole(quote_ident(SESSION_USER)))::oid)::bigint)))) AND (organization_id = ANY (ARRAY(SELECT
  o.id FROM app.organizations o)))));
CREATE POLICY scoped_all ON app.task_dependencies TO runner_scoped USING ((organization_id = (SELECT
  app.current_organization()))) WITH CHECK ((organization_id = (SELECT app.current_organization())));
CREATE POLICY tenant_read ON app.task_dependencies FOR SELECT TO runner_api USING ((organization_id = (SELECT
  app.current_organization())));
GRANT SELECT (organization_id, id, task_id, depends_on_task_id, root_task_id, depends_on_root_task_id, required,
  created_at) ON app.task_dependencies TO runner_admin;
GRANT SELECT ON app.task_dependencies TO runner_api;
GRANT SELECT (organization_id, id, task_id, depends_on_task_id, required, created_at) ON app.task_dependencies TO
  runner_report;
GRANT SELECT, INSERT, UPDATE, DELETE ON app.task_dependencies TO runner_scoped;

-- task_identifiers ────────────────────────────────────────────────────────────────────────────────────────────────────
-- The last number that was given to a task, by scope.
CREATE TABLE app.task_identifiers (
  organization_id uuid NOT NULL,                                  -- The organization it belongs to.
  scope app.task_identifier_scope NOT NULL,                       -- T or I.
  last_number integer NOT NULL DEFAULT 0,                         -- The last one that was given.
  CONSTRAINT task_identifiers_pkey PRIMARY KEY (organization_id, scope),
  CONSTRAINT task_identifiers_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES app.organizations(id) ON
    DELETE CASCADE,
  CONSTRAINT task_identifiers_last_number_check CHECK ((last_number >= 0))
);
ALTER TABLE app.task_identifiers ENABLE ROW LEVEL SECURITY;
ALTER TABLE app.task_identifiers FORCE ROW LEVEL SECURITY;
CREATE POLICY owner_all ON app.task_identifiers TO runner_owner USING (true) WITH CHECK (true);
CREATE POLICY scoped_all ON app.task_identifiers TO runner_scoped USING ((organization_id = (SELECT
  app.current_organization()))) WITH CHECK ((organization_id = (SELECT app.current_organization())));
GRANT SELECT, INSERT, UPDATE, DELETE ON app.task_identifiers TO runner_scoped;

-- task_inputs ─────────────────────────────────────────────────────────────────────────────────────────────────────────
-- Files that were uploaded as inputs of a task.
CREATE TABLE app.task_inputs (
  organization_id uuid NOT NULL,                                  -- The organization it belongs to.
  task_id uuid NOT NULL,                                          -- The task.
  path text NOT NULL,                                             -- Where a run finds it.
  storage_key text NOT NULL,                                      -- Where the bytes lie in the object storage; never shown.
  size bigint NOT NULL,                                           -- In bytes.
  sha256 text NOT NULL,                                           -- SHA-256 of the bytes, in hex.
  media_type text NOT NULL,                                       -- As its content says.
  created_at timestamptz NOT NULL DEFAULT now(),                  -- When it was made.
  CONSTRAINT task_inputs_pkey PRIMARY KEY (organization_id, task_id, path),
  CONSTRAINT task_inputs_task_id_fkey FOREIGN KEY (organization_id, task_id) REFERENCES app.tasks(organization_id, id) ON
    DELETE CASCADE,
  CONSTRAINT task_inputs_path_check CHECK (((length(path) >= 1) AND (length(path) <= 1024))),
  CONSTRAINT task_inputs_sha256_check CHECK ((sha256 ~ '^[0-9a-f]{64}$')),
  CONSTRAINT task_inputs_size_check CHECK ((size >= 0))
);
ALTER TABLE app.task_inputs ENABLE ROW LEVEL SECURITY;
ALTER TABLE app.task_inputs FORCE ROW LEVEL SECURITY;
CREATE POLICY admin_read ON app.task_inputs FOR SELECT TO runner_admin USING (((((SELECT app.current_organization()) IS
  NULL) OR (organization_id = (SELECT app.current_organization()))) AND (organization_id <> ALL ((SELECT
  app.organizations_deleted())::uuid[]))));
CREATE POLICY owner_all ON app.task_inputs TO runner_owner USING (true) WITH CHECK (true);
CREATE POLICY scoped_all ON app.task_inputs TO runner_scoped USING ((organization_id = (SELECT
  app.current_organization()))) WITH CHECK ((organization_id = (SELECT app.current_organization())));
CREATE POLICY tenant_read ON app.task_inputs FOR SELECT TO runner_api USING ((organization_id = (SELECT
  app.current_organization())));
GRANT SELECT (organization_id, task_id, path, size, sha256, media_type, created_at) ON app.task_inputs TO runner_admin;
GRANT SELECT ON app.task_inputs TO runner_api;
GRANT SELECT, INSERT, UPDATE, DELETE ON app.task_inputs TO runner_scoped;

-- task_outcomes ───────────────────────────────────────────────────────────────────────────────────────────────────────
-- What agents handed in about their run: plans, verdicts, waits, questions. Applied when the run completes.
CREATE TABLE app.task_outcomes (
  organization_id uuid NOT NULL,                                  -- The organization it belongs to.
  run_id uuid NOT NULL,                                           -- The run; it hands in one.
  task_id uuid NOT NULL,                                          -- Its task.
  kind app.task_outcome_kind NOT NULL,                            -- What was handed in.
  idempotency_key text NOT NULL,                                  -- Chosen by the agent: sent again it gets the same response.
  body_hash text NOT NULL,                                        -- Digest of what was sent.
  task_version integer NOT NULL,                                  -- The version of the task that the run saw.
  graph_revision integer NOT NULL,                                -- The structure that the run saw.
  outcome jsonb NOT NULL,                                         -- What was handed in.
  reference_ids jsonb NOT NULL DEFAULT '[]',                      -- Tasks that a plan names.
  applied_at timestamptz,                                         -- When the run completed with it.
  created_at timestamptz NOT NULL DEFAULT now(),                  -- When it was made.
  CONSTRAINT task_outcomes_pkey PRIMARY KEY (organization_id, run_id),
  CONSTRAINT task_outcomes_run_id_fkey FOREIGN KEY (organization_id, run_id) REFERENCES app.runs(organization_id, id) ON
    DELETE CASCADE,
  CONSTRAINT task_outcomes_task_id_fkey FOREIGN KEY (organization_id, task_id) REFERENCES app.tasks(organization_id, id)
    ON DELETE CASCADE,
  CONSTRAINT task_outcomes_idempotency_key_check CHECK (((length(idempotency_key) >= 1) AND (length(idempotency_key) <=
    200))),
  CONSTRAINT task_outcomes_outcome_check CHECK (((jsonb_typeof(outcome) = 'object') AND ((outcome ->> 'kind') = kind))),
  CONSTRAINT task_outcomes_reference_ids_check CHECK ((jsonb_typeof(reference_ids) = 'array'))
);
-- Not sampled (SET STATISTICS 0): outcome, reference_ids
CREATE INDEX task_outcomes_task_id_idx ON app.task_outcomes USING btree (organization_id, task_id);
ALTER TABLE app.task_outcomes ENABLE ROW LEVEL SECURITY;
ALTER TABLE app.task_outcomes FORCE ROW LEVEL SECURITY;
CREATE POLICY admin_read ON app.task_outcomes FOR SELECT TO runner_admin USING (((((SELECT app.current_organization())
  IS NULL) OR (organization_id = (SELECT app.current_organization()))) AND (organization_id <> ALL ((SELECT
  app.organizations_deleted())::uuid[]))));
CREATE POLICY owner_all ON app.task_outcomes TO runner_owner USING (true) WITH CHECK (true);
CREATE POLICY scoped_all ON app.task_outcomes TO runner_scoped USING ((organization_id = (SELECT
  app.current_organization()))) WITH CHECK ((organization_id = (SELECT app.current_organization())));
CREATE POLICY tenant_read ON app.task_outcomes FOR SELECT TO runner_api USING ((organization_id = (SELECT
  app.current_organization())));
GRANT SELECT (organization_id, run_id, task_id, kind, task_version, graph_revision, outcome, reference_ids, applied_at,
  created_at) ON app.task_outcomes TO runner_admin;
GRANT SELECT ON app.task_outcomes TO runner_api;
GRANT SELECT, INSERT, UPDATE, DELETE ON app.task_outcomes TO runner_scoped;

-- tasks ───────────────────────────────────────────────────────────────────────────────────────────────────────────────
-- Work to be done. Initiatives are planned and have tasks below them; tasks are executed by runs.
CREATE TABLE app.tasks (
  organization_id uuid NOT NULL,                                  -- The organization it belongs to.
  id uuid NOT NULL DEFAULT app.uuid_v7(),                         -- Id of the task.
  identifier_scope app.task_identifier_scope NOT NULL,            -- T for tasks, I for initiatives.
  identifier_number integer NOT NULL,                             -- Counted in the organization, by scope.
  parent_id uuid,                                                 -- The initiative that it is below.
  root_task_id uuid NOT NULL,                                     -- The top of its hierarchy; itself at depth 0.
  depth integer NOT NULL DEFAULT 0,                               -- How far below its root.
  owner_agent_profile_id uuid NOT NULL,                           -- Whose work it is.
  source_chat_id uuid,                                            -- The chat it came from.
  source_message_id uuid,                                         -- The message it came from.
  schedule_id uuid,                                               -- The schedule whose fire made it.
  created_by_run_id uuid,                                         -- The run that made it.
  active_run_id uuid,                                             -- The run that works on it.
  failure_origin_id uuid,                                         -- The task whose failure ended it, maybe itself; null: a person did.
  cancel_origin_id uuid,                                          -- The task that a person cancelled, and this one with it, maybe itself: a retry of it brings both back.
  kind app.task_kind NOT NULL,                                    -- Initiatives are planned, tasks are executed.
  status app.task_status NOT NULL,                                -- pending: ready to run. blocked: see its blockers. waiting: until a time. Open are those and running.
  phase app.task_phase NOT NULL,                                  -- What its next run does; closed when it is over.
  title text NOT NULL,                                            -- For people.
  priority integer NOT NULL DEFAULT 0,                            -- Higher goes first.
  dedupe_key text NOT NULL,                                       -- An open task with the same key is not made twice.
  spec jsonb NOT NULL,                                            -- Objective, inputs, acceptance criteria, budget, verification.
  blockers jsonb NOT NULL DEFAULT '[]',                           -- Why it is blocked, as found when it last changed.
  waiting_until timestamptz,                                      -- When it goes on by itself.
  waiting_reason text,                                            -- What it waits for, as its run said.
  waiting_action_ids jsonb,                                       -- Actions that it waits for, as its run said.
  contract jsonb,                                                 -- Failures of its acceptance criteria in this phase.
  answers jsonb NOT NULL DEFAULT '[]',                            -- What people answered about it, for its next run.
  replan jsonb,                                                   -- Why an initiative is planned again.
  verification jsonb,                                             -- What a verifier verifies.
  error jsonb,                                                    -- Why it failed.
  result jsonb,                                                   -- What it led to.
  spend_limited boolean NOT NULL DEFAULT false,                   -- Of a root: something in its hierarchy has a spend limit, so what runs cost is counted.
  spend_allowance jsonb,                                          -- The budget as it was set, once an answer has raised it.
  version integer NOT NULL DEFAULT 1,                             -- Rises with every change.
  graph_revision integer NOT NULL DEFAULT 1,                      -- Rises with every change of the structure below its root; counted at the root.
  completion_revision integer NOT NULL DEFAULT 0,                 -- Rises with each completion.
  agent_run_count integer NOT NULL DEFAULT 0,                     -- Runs that were started for it.
  consumed_agent_run_count integer NOT NULL DEFAULT 0,            -- Runs that were started for it and below it; what the budget limits.
  replan_count integer NOT NULL DEFAULT 0,                        -- How often it was planned again.
  spent_cost_minor_units bigint NOT NULL DEFAULT 0,               -- What its runs and those below it cost, in minor units, where that is counted.
  spent_tokens bigint NOT NULL DEFAULT 0,                         -- Tokens of those runs.
  cost_known_run_count integer NOT NULL DEFAULT 0,                -- How many of those runs said what they cost; the cost of others is unknown.
  scheduled_at timestamptz,                                       -- It does not start before.
  due_at timestamptz,                                             -- When it should be done.
  due_order timestamptz NOT NULL GENERATED ALWAYS AS (COALESCE(due_at, '9999-12-31 00:00:00+00'::timestamptz)) STORED,  -- Sort key of due_at: those without come last.
  started_at timestamptz,                                         -- When its first run started.
  completed_at timestamptz,                                       -- When it was completed.
  created_at timestamptz NOT NULL DEFAULT now(),                  -- When it was made.
  updated_at timestamptz NOT NULL DEFAULT now(),                  -- When it was last changed.
  CONSTRAINT tasks_pkey PRIMARY KEY (organization_id, id),
  CONSTRAINT tasks_identifier_key UNIQUE (organization_id, identifier_scope, identifier_number),
  CONSTRAINT tasks_owner_agent_profile_id_fkey FOREIGN KEY (organization_id, owner_agent_profile_id) REFERENCES
    app.agent_profiles(organization_id, id),
  CONSTRAINT tasks_parent_id_fkey FOREIGN KEY (organization_id, parent_id) REFERENCES app.tasks(organization_id, id),
  CONSTRAINT tasks_root_task_id_fkey FOREIGN KEY (organization_id, root_task_id) REFERENCES app.tasks(organization_id, id),
  CONSTRAINT tasks_row_check CHECK (app.tasks_check(tasks.*))
);
-- The rules of app.tasks_check:
-- when not ((r.status = 'blocked') = (r.blockers <> '[]')) then 'tasks_blocked_when_blockers_check'
-- when not jsonb_typeof(r.blockers) = 'array' then 'tasks_blockers_check'
-- when not (r.cancel_origin_id is null or r.status = 'cancelled' and r.failure_origin_id is null)
--   then 'tasks_cancel_origin_when_cancelled_check'
-- when not ((r.phase = 'closed') = (r.status in ('completed', 'failed', 'cancelled'))) then 'tasks_closed_when_over_check'
-- when not ((r.status = 'completed') = (r.completed_at is not null)) then 'tasks_completed_at_when_completed_check'
-- when not (r.version >= 1 and r.graph_revision >= 1 and r.agent_run_count >= 0 and r.replan_count >= 0
--   and r.completion_revision >= 0 and r.consumed_agent_run_count >= r.agent_run_count) then 'tasks_counters_check'
-- when not length(r.dedupe_key) between 1 and 200 then 'tasks_dedupe_key_check'
-- when not (r.depth >= 0 and (r.depth = 0) = (r.parent_id is null)) then 'tasks_depth_check'
-- when not (r.failure_origin_id is null or r.status in ('failed', 'cancelled')) then 'tasks_failure_origin_when_over_check'
-- when not (r.status <> 'failed' or r.failure_origin_id is not null) then 'tasks_origin_when_failed_check'
-- when not (r.phase <> 'plan' or r.kind = 'initiative') then 'tasks_plan_of_initiative_check'
-- when not (r.replan is null or r.kind = 'initiative') then 'tasks_replan_of_initiative_check'
-- when not ((r.parent_id is null) = (r.root_task_id = r.id)) then 'tasks_root_when_no_parent_check'
-- when not ((r.status = 'running') = (r.active_run_id is not null)) then 'tasks_running_when_active_run_check'
-- when not ((r.kind = 'task') = (r.identifier_scope = 'T')) then 'tasks_scope_of_kind_check'
-- when not jsonb_typeof(r.spec) = 'object' then 'tasks_spec_check'
-- when not (r.spent_cost_minor_units >= 0 and r.spent_tokens >= 0 and r.cost_known_run_count >= 0) then 'tasks_spend_check'
-- when not (not r.spend_limited or r.parent_id is null) then 'tasks_spend_limited_when_root_check'
-- when not length(r.title) between 1 and 200 then 'tasks_title_check'
-- when not (r.phase <> 'verify' or r.verification is not null) then 'tasks_verification_when_verify_check'
-- when not (r.waiting_action_ids is null
--   or r.status in ('pending', 'blocked') and jsonb_typeof(r.waiting_action_ids) = 'array')
--   then 'tasks_waiting_action_ids_when_open_check'
-- when not ((r.status = 'waiting') = (r.waiting_until is not null)) then 'tasks_waiting_when_until_check'
-- Not sampled (SET STATISTICS 0): title, priority, spec, blockers, waiting_action_ids, contract, answers, replan,
-- verification, error, result, spend_allowance, agent_run_count, consumed_agent_run_count, replan_count
CREATE INDEX tasks_all_created_at_idx ON app.tasks USING btree (created_at, id);
CREATE INDEX tasks_created_at_idx ON app.tasks USING btree (organization_id, created_at, id);
CREATE INDEX tasks_due_order_idx ON app.tasks USING btree (organization_id, due_order, id);
CREATE INDEX tasks_identifier_number_idx ON app.tasks USING btree (organization_id, identifier_number, id);
CREATE UNIQUE INDEX tasks_open_dedupe_key_idx ON app.tasks USING btree (organization_id, dedupe_key) WHERE status IN
  ('pending', 'blocked', 'running', 'waiting');
CREATE INDEX tasks_owner_agent_profile_id_idx ON app.tasks USING btree (organization_id, owner_agent_profile_id,
  created_at, id);
CREATE INDEX tasks_parent_id_idx ON app.tasks USING btree (organization_id, parent_id, created_at, id) WHERE (parent_id
  IS NOT NULL);
CREATE INDEX tasks_priority_idx ON app.tasks USING btree (organization_id, priority, id);
CREATE INDEX tasks_root_task_id_idx ON app.tasks USING btree (organization_id, root_task_id, created_at, id);
CREATE INDEX tasks_schedule_id_idx ON app.tasks USING btree (organization_id, schedule_id) WHERE ((schedule_id IS NOT
  NULL) AND status IN ('pending', 'blocked', 'running', 'waiting'));
CREATE INDEX tasks_scheduled_at_idx ON app.tasks USING btree (scheduled_at) WHERE ((status = 'blocked') AND
  (scheduled_at IS NOT NULL) AND (blockers @> '[{"kind": "schedule"}]'));
CREATE INDEX tasks_scheduled_at_turns_idx ON app.tasks USING btree (organization_id, scheduled_at) WHERE ((status =
  'blocked') AND (scheduled_at IS NOT NULL) AND (blockers @> '[{"kind": "schedule"}]'));
CREATE INDEX tasks_source_chat_id_idx ON app.tasks USING btree (organization_id, source_chat_id, created_at, id) WHERE
  (source_chat_id IS NOT NULL);
CREATE INDEX tasks_status_idx ON app.tasks USING btree (organization_id, status, created_at, id);
CREATE INDEX tasks_updated_at_idx ON app.tasks USING btree (organization_id, updated_at, id);
CREATE INDEX tasks_verify_idx ON app.tasks USING btree (organization_id, id) WHERE (phase = 'verify');
CREATE INDEX tasks_waiting_until_idx ON app.tasks USING btree (waiting_until) WHERE (status = 'waiting');
CREATE INDEX tasks_waiting_until_turns_idx ON app.tasks USING btree (organization_id, waiting_until) WHERE (status =
  'waiting');
CREATE TRIGGER tasks_raise_version BEFORE UPDATE ON app.tasks FOR EACH ROW EXECUTE FUNCTION app.tasks_raise_version();
CREATE TRIGGER tasks_track_spend_insert AFTER INSERT ON app.tasks FOR EACH ROW WHEN (((new.spec -> 'budget') ?|
  ARRAY['maxCostMinorUnits', 'maxTokens'])) EXECUTE FUNCTION app.tasks_track_spend();
CREATE TRIGGER tasks_track_spend_update AFTER UPDATE OF spec ON app.tasks FOR EACH ROW WHEN (((new.spec -> 'budget') ?|
  ARRAY['maxCostMinorUnits', 'maxTokens'])) EXECUTE FUNCTION app.tasks_track_spend();
ALTER TABLE app.tasks ENABLE ROW LEVEL SECURITY;
ALTER TABLE app.tasks FORCE ROW LEVEL SECURITY;
CREATE POLICY admin_read ON app.tasks FOR SELECT TO runner_admin USING (((((SELECT app.current_organization()) IS NULL)
  OR (organization_id = (SELECT app.current_organization()))) AND (organization_id <> ALL ((SELECT
  app.organizations_deleted())::uuid[]))));
CREATE POLICY global_read ON app.tasks FOR SELECT TO runner_global USING (true);
CREATE POLICY owner_all ON app.tasks TO runner_owner USING (true) WITH CHECK (true);
CREATE POLICY report_read ON app.tasks FOR SELECT TO runner_report USING ((app.report_shows(organization_id, (SELECT
  (pg_has_role(SESSION_USER, 'runner_report'::name, 'member') OR (EXISTS (SELECT FROM app.analysts a WHERE ((a.login =
  SESSION_USER) AND (a.login_oid = ((to_regrole(quote_ident(SESSION_USER)))::oid)::bigint) AND a.all_organizations))))),
  ARRAY(SELECT g.organization_id FROM app.analyst_grants g WHERE ((g.login = SESSION_USER) AND (g.login_oid =
  ((to_regrole(quote_ident(SESSION_USER)))::oid)::bigint)))) AND (organization_id = ANY (ARRAY(SELECT o.id FROM
  app.organizations o)))));
CREATE POLICY scoped_all ON app.tasks TO runner_scoped USING ((organization_id = (SELECT app.current_organization())))
  WITH CHECK ((organization_id = (SELECT app.current_organization())));
CREATE POLICY tenant_read ON app.tasks FOR SELECT TO runner_api, runner_jobs USING ((organization_id = (SELECT
  app.current_organization())));
GRANT SELECT (organization_id, id, identifier_scope, identifier_number, parent_id, root_task_id, depth,
  owner_agent_profile_id, source_chat_id, source_message_id, schedule_id, created_by_run_id, active_run_id,
  failure_origin_id, kind, status, phase, title, priority, dedupe_key, spec, blockers, waiting_until, waiting_reason,
  contract, answers, replan, verification, error, result, spend_limited, version, graph_revision, completion_revision,
  agent_run_count, consumed_agent_run_count, replan_count, spent_cost_minor_units, spent_tokens, cost_known_run_count,
  scheduled_at, due_at, started_at, completed_at, created_at, updated_at) ON app.tasks TO runner_admin;
GRANT SELECT ON app.tasks TO runner_api, runner_global, runner_jobs;
GRANT SELECT (organization_id, id, identifier_scope, identifier_number, parent_id, root_task_id, depth,
  owner_agent_profile_id, source_chat_id, source_message_id, schedule_id, created_by_run_id, failure_origin_id, kind,
  status, phase, title, priority, spec, blockers, waiting_until, error, agent_run_count, consumed_agent_run_count,
  replan_count, scheduled_at, due_at, started_at, completed_at, created_at, updated_at) ON app.tasks TO runner_report;
GRANT SELECT, INSERT, UPDATE, DELETE ON app.tasks TO runner_scoped;

-- domains ─────────────────────────────────────────────────────────────────────────────────────────────────────────────
CREATE DOMAIN app.action_decision AS text CHECK (VALUE IN ('approved', 'rejected'));
CREATE DOMAIN app.action_kind AS text CHECK (VALUE IN ('provider_write', 'git_push'));
CREATE DOMAIN app.action_reconciliation AS text CHECK (VALUE IN ('succeeded', 'failed', 'not_executed'));
CREATE DOMAIN app.action_status AS text CHECK (VALUE IN ('awaiting_approval', 'approved', 'rejected', 'expired',
  'cancelled', 'executing', 'succeeded', 'failed', 'unknown', 'not_executed'));
CREATE DOMAIN app.agent_profile_kind AS text CHECK (VALUE IN ('operator', 'chat', 'department'));
CREATE DOMAIN app.agent_profile_status AS text CHECK (VALUE IN ('enabled', 'disabled'));
CREATE DOMAIN app.audit_actor_kind AS text CHECK (VALUE IN ('owner', 'operator', 'admin'));
CREATE DOMAIN app.audit_outcome AS text CHECK (VALUE IN ('done', 'refused'));
CREATE DOMAIN app.chat_status AS text CHECK (VALUE IN ('open', 'archived'));
CREATE DOMAIN app.context_assessment AS text CHECK (VALUE IN ('full_audit', 'integration_reconciliation'));
CREATE DOMAIN app.context_document_kind AS text CHECK (VALUE IN ('facts', 'strategy', 'processes', 'glossary',
  'notes'));
CREATE DOMAIN app.context_scope AS text CHECK (VALUE IN ('organization', 'growth', 'engineering', 'support'));
CREATE DOMAIN app.context_source_kind AS text CHECK (VALUE IN ('file', 'markdown', 'page'));
CREATE DOMAIN app.context_source_origin AS text CHECK (VALUE IN ('onboarding', 'chat', 'task', 'research'));
CREATE DOMAIN app.context_source_status AS text CHECK (VALUE IN ('stored', 'ingested', 'failed'));
CREATE DOMAIN app.department AS text CHECK (VALUE IN ('growth', 'engineering', 'support'));
CREATE DOMAIN app.human_inbox_item_kind AS text CHECK (VALUE IN ('question', 'notification', 'approval',
  'reconciliation'));
CREATE DOMAIN app.human_inbox_item_purpose AS text CHECK (VALUE IN ('repair', 'budget', 'needs_input', 'prerequisite',
  'agent', 'schedule', 'failure', 'approval', 'reconciliation'));
CREATE DOMAIN app.human_inbox_item_status AS text CHECK (VALUE IN ('open', 'responded', 'acknowledged', 'resolved',
  'cancelled'));
CREATE DOMAIN app.insight_cursor_mode AS text CHECK (VALUE IN ('tail', 'backfill', 'rescan'));
CREATE DOMAIN app.insight_environment AS text CHECK (VALUE IN ('live', 'test'));
CREATE DOMAIN app.insight_unit_mode AS text CHECK (VALUE IN ('discovery', 'tail', 'backfill', 'rescan'));
CREATE DOMAIN app.insight_unit_state AS text CHECK (VALUE IN ('leased', 'committed', 'discarded', 'failed', 'released',
  'expired'));
CREATE DOMAIN app.integration_access_mode AS text CHECK (VALUE IN ('read_only', 'full'));
CREATE DOMAIN app.integration_connection_kind AS text CHECK (VALUE IN ('none', 'api_key', 'bearer_token',
  'github_token', 'mongodb', 'oauth1', 'oauth2'));
CREATE DOMAIN app.integration_discovery_status AS text CHECK (VALUE IN ('ok', 'failed'));
CREATE DOMAIN app.integration_effect AS text CHECK (VALUE IN ('read', 'write'));
CREATE DOMAIN app.integration_gateway_kind AS text CHECK (VALUE IN ('cli', 'git'));
CREATE DOMAIN app.integration_oauth_result AS text CHECK (VALUE IN ('connected', 'denied', 'failed', 'expired',
  'conflict'));
CREATE DOMAIN app.integration_reauthorization_reason AS text CHECK (VALUE IN ('refresh_refused', 'key_lost',
  'scopes_withdrawn', 'revoked', 'client_refused'));
CREATE DOMAIN app.integration_repair_status AS text CHECK (VALUE IN ('queued', 'applied'));
CREATE DOMAIN app.integration_risk AS text CHECK (VALUE IN ('low', 'external', 'high'));
CREATE DOMAIN app.integration_status AS text CHECK (VALUE IN ('enabled', 'disabled'));
CREATE DOMAIN app.message_role AS text CHECK (VALUE IN ('user', 'assistant'));
CREATE DOMAIN app.message_status AS text CHECK (VALUE IN ('pending', 'complete', 'cancelling', 'cancelled', 'failed'));
CREATE DOMAIN app.onboarding_status AS text CHECK (VALUE IN ('collecting', 'researching', 'research_failed', 'review',
  'completed', 'discarded'));
CREATE DOMAIN app.organization_member_role AS text CHECK (VALUE IN ('owner', 'viewer'));
CREATE DOMAIN app.organization_status AS text CHECK (VALUE IN ('onboarding', 'active', 'suspended'));
CREATE DOMAIN app.research_finding_origin AS text CHECK (VALUE IN ('job', 'chat'));
CREATE DOMAIN app.research_status AS text CHECK (VALUE IN ('not_started', 'queued', 'running', 'completed', 'failed'));
CREATE DOMAIN app.run_finish_call AS text CHECK (VALUE IN ('complete', 'fail'));
CREATE DOMAIN app.run_input_role AS text CHECK (VALUE IN ('instructions', 'input'));
CREATE DOMAIN app.run_kind AS text CHECK (VALUE IN ('task', 'chat'));
CREATE DOMAIN app.run_log_category AS text CHECK (VALUE IN ('planning', 'execution', 'tool', 'verification', 'sync',
  'system'));
CREATE DOMAIN app.run_log_state AS text CHECK (VALUE IN ('not_recorded', 'recording', 'complete', 'truncated'));
CREATE DOMAIN app.run_log_status AS text CHECK (VALUE IN ('running', 'completed', 'failed', 'skipped'));
CREATE DOMAIN app.run_mode AS text CHECK (VALUE IN ('plan', 'execute', 'verify'));
CREATE DOMAIN app.run_request_state AS text CHECK (VALUE IN ('queued', 'published', 'leased', 'started', 'finished',
  'cancelled'));
CREATE DOMAIN app.run_status AS text CHECK (VALUE IN ('starting', 'running', 'succeeded', 'failed', 'cancelled',
  'expired'));
CREATE DOMAIN app.schedule_overlap AS text CHECK (VALUE IN ('skip', 'allow'));
CREATE DOMAIN app.schedule_status AS text CHECK (VALUE IN ('active', 'paused'));
CREATE DOMAIN app.task_identifier_scope AS text CHECK (VALUE IN ('T', 'I'));
CREATE DOMAIN app.task_kind AS text CHECK (VALUE IN ('task', 'initiative'));
CREATE DOMAIN app.task_outcome_kind AS text CHECK (VALUE IN ('plan', 'verification', 'waiting', 'needs_input',
  'execution'));
CREATE DOMAIN app.task_phase AS text CHECK (VALUE IN ('plan', 'execute', 'verify', 'closed'));
CREATE DOMAIN app.task_status AS text CHECK (VALUE IN ('pending', 'blocked', 'running', 'waiting', 'completed',
  'failed', 'cancelled'));

-- functions ───────────────────────────────────────────────────────────────────────────────────────────────────────────
app.action_approve(p_organization_id uuid, p_action_id uuid, p_expected_version integer, p_arguments_sha256 text, p_note
    text, p_actor jsonb) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.action_begin(p_organization_id uuid, p_action_id uuid, p_lease_id uuid, p_seconds integer, p_files jsonb,
    p_approval_days integer, p_obstacle text DEFAULT NULL::text) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_jobs
app.action_decider_require(p_organization_id uuid, p_actor jsonb) returns text
  -- plpgsql, owner runner_scoped
app.action_end(a app.actions, p_item text) returns void
  -- plpgsql, owner runner_scoped
app.action_expire(a app.actions) returns jsonb
  -- plpgsql, owner runner_scoped
app.action_file_begin(p_organization_id uuid, p_token_hash text, p_integration_id uuid, p_invocation_id text, p_file_id
    uuid, p_file jsonb, p_upload_key text, p_seconds integer) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.action_file_lock(p_organization_id uuid, p_run_id uuid, p_integration_id uuid, p_invocation_id text, p_file_id uuid,
    p_file jsonb) returns app.action_invocation_files
  -- plpgsql, owner runner_scoped
app.action_file_record(f app.action_invocation_files) returns jsonb
  -- sql, immutable, owner runner_scoped
app.action_file_store(p_organization_id uuid, p_token_hash text, p_integration_id uuid, p_invocation_id text, p_file_id
    uuid, p_begun boolean, p_file jsonb, p_storage_key text) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.action_files_find(p_organization_id uuid, p_token_hash text, p_integration_id uuid, p_invocation_id text, p_file_ids
    uuid[]) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.action_files_limit(p_organization_id uuid, p_run_id uuid) returns void
  -- plpgsql, owner runner_scoped
app.action_finish(p_organization_id uuid, p_action_id uuid, p_lease_id uuid, p_outcome jsonb) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_jobs
app.action_invocation_begin(p_organization_id uuid, p_token_hash text, p_integration_id uuid, p_invocation_id text,
    p_body_sha256 text, p_tool text, p_lease_id uuid, p_seconds integer) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.action_invocation_find(p_organization_id uuid, p_run_id uuid, p_integration_id uuid, p_invocation_id text,
    p_body_sha256 text) returns app.action_invocations
  -- plpgsql, owner runner_scoped
app.action_invocation_finish(p_organization_id uuid, p_run_id uuid, p_integration_id uuid, p_invocation_id text,
    p_lease_id uuid, p_outcome jsonb) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.action_invocation_read(p_organization_id uuid, p_token_hash text, p_integration_id uuid, p_invocation_id text,
    p_lease_id uuid) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.action_invocations_due(p_organizations integer, p_rows integer, p_after uuid DEFAULT NULL::uuid) returns
    TABLE(organization_id uuid, run_id uuid)
  -- sql, stable, security definer, owner runner_global, executed by runner_jobs
app.action_invocations_remove(p_organization_id uuid, p_run_id uuid, p_rows integer, p_removed text[] DEFAULT
    NULL::text[]) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_jobs
app.action_item_open(a app.actions) returns void
  -- sql, owner runner_scoped
app.action_lease(p_organization_id uuid, p_action_id uuid, p_lease_id uuid, p_seconds integer, p_push_seconds integer,
    p_look_up_seconds integer, p_approval_days integer, p_file_bytes_per_second integer) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_jobs
app.action_lease_require(a app.actions, p_lease_id uuid) returns void
  -- plpgsql, owner runner_scoped
app.action_lock(p_organization_id uuid, p_action_id uuid, p_root boolean) returns app.actions
  -- plpgsql, owner runner_scoped
app.action_objects_named(p_organization_id uuid, p_keys text[]) returns jsonb
  -- plpgsql, stable, security definer, owner runner_scoped, executed by runner_jobs
app.action_propose(p_organization_id uuid, p_token_hash text, p_integration_id uuid, p_kind text, p_proposal jsonb,
    p_approval_days integer) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.action_reconcile(p_organization_id uuid, p_action_id uuid, p_outcome text, p_note text, p_actor jsonb) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.action_record(a app.actions) returns jsonb
  -- sql, stable, owner runner_scoped
app.action_reject(p_organization_id uuid, p_action_id uuid, p_reason text, p_actor jsonb) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.action_release(p_organization_id uuid, p_action_id uuid, p_lease_id uuid, p_seconds integer) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_jobs
app.action_results(p_organization_id uuid, p_action_ids jsonb) returns jsonb
  -- sql, stable, owner runner_scoped
app.action_seen(a app.actions) returns jsonb
  -- sql, immutable, owner runner_scoped
app.action_state_require(a app.actions, p_status text) returns void
  -- plpgsql, owner runner_scoped
app.action_unavailable(i app.integrations, c app.integration_connections, p app.agent_profiles, t app.integration_tools,
    p_kind text, p_allowed jsonb) returns text
  -- sql, immutable, owner runner_scoped
app.action_unknown(a app.actions) returns app.actions
  -- plpgsql, owner runner_scoped
app.action_wait_check(p_organization_id uuid, p_task_id uuid, p_mode text, p_path text, p_result jsonb) returns void
  -- plpgsql, owner runner_scoped
app.actions_cancel(p_organization_id uuid, p_action_ids uuid[], p_reason jsonb) returns void
  -- plpgsql, owner runner_scoped
app.actions_cancel_of_integrations(p_organization_id uuid, p_integration_ids uuid[], p_reason jsonb DEFAULT '{"code":
    "connection_replaced", "message": "The connection that it was proposed for is gone, or another one"}') returns void
  -- plpgsql, owner runner_scoped
app.actions_cancel_of_message(p_organization_id uuid, p_message_id uuid) returns void
  -- sql, owner runner_scoped
app.actions_cancel_of_tasks(p_organization_id uuid, p_task_ids uuid[]) returns void
  -- sql, owner runner_scoped
app.actions_due(p_organizations integer, p_rows integer, p_after uuid DEFAULT NULL::uuid) returns TABLE(organization_id
    uuid, id uuid)
  -- sql, stable, security definer, owner runner_global, executed by runner_jobs
app.actions_expire(p_organization_id uuid, p_action_ids uuid[]) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_jobs
app.actions_of_day(p_organization_id uuid, p_timezone text, p_at timestamptz) returns bigint
  -- sql, stable, owner runner_scoped
app.actor_require(p_organization_id uuid, p_actor jsonb, p_task_id uuid DEFAULT NULL::uuid) returns jsonb
  -- plpgsql, owner runner_scoped
app.admin_catalog_publish(p_revision text, p_catalog jsonb, p_admin text, p_request_id text DEFAULT NULL::text) returns
    jsonb
  -- plpgsql, security definer, owner runner_global, executed by runner_admin
app.admin_dispatch_resume(p_organization_id uuid, p_admin text, p_request_id text DEFAULT NULL::text) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_admin
app.admin_dispatch_stop(p_organization_id uuid, p_admin text, p_request_id text DEFAULT NULL::text) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_admin
app.admin_lease_expire(p_organization_id uuid, p_run_request_id uuid, p_admin text, p_max_attempts integer,
    p_backoff_seconds integer, p_backoff_max_seconds integer, p_request_id text DEFAULT NULL::text) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_admin
app.admin_organization_reactivate(p_organization_id uuid, p_admin text, p_request_id text DEFAULT NULL::text) returns
    jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_admin
app.admin_organization_suspend(p_organization_id uuid, p_admin text, p_request_id text DEFAULT NULL::text) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_admin
app.admin_record(p_organization_id uuid, p_admin text, p_action text, p_subject_kind text, p_subject_id text,
    p_arguments jsonb, p_response jsonb, p_result jsonb, p_request_id text) returns jsonb
  -- sql, owner runner_scoped
app.admin_run_request_requeue(p_organization_id uuid, p_run_request_id uuid, p_admin text, p_request_id text DEFAULT
    NULL::text) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_admin
app.admin_schedule_pause(p_organization_id uuid, p_schedule_ref text, p_admin text, p_request_id text DEFAULT
    NULL::text) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_admin
app.admin_schedule_resume(p_organization_id uuid, p_schedule_ref text, p_next_run_at timestamptz, p_version integer,
    p_admin text, p_request_id text DEFAULT NULL::text) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_admin
app.admin_task_cancel(p_organization_id uuid, p_task_ref text, p_admin text, p_request_id text DEFAULT NULL::text)
    returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_admin
app.admin_task_retry(p_organization_id uuid, p_task_ref text, p_admin text, p_request_id text DEFAULT NULL::text)
    returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_admin
app.agent_catalog_publish(p_revision text, p_catalog jsonb) returns jsonb
  -- plpgsql, security definer, owner runner_global
app.agent_catalog_publish_if_none(p_revision text, p_catalog jsonb) returns jsonb
  -- plpgsql, security definer, owner runner_global, executed by runner_api
app.agent_catalogs_keep() returns trigger
  -- plpgsql, owner runner_owner
app.agent_profile_apply(o app.agent_profiles, n app.agent_profiles) returns app.agent_profiles
  -- plpgsql, owner runner_scoped
app.agent_profile_create(p_organization_id uuid, p_fields jsonb) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.agent_profile_defaults(p_organization_id uuid, p_key text) returns jsonb
  -- sql, immutable, owner runner_scoped
app.agent_profile_delete(p_organization_id uuid, p_agent_profile_id uuid) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.agent_profile_insert(p_organization_id uuid, p_fields jsonb) returns app.agent_profiles
  -- plpgsql, owner runner_scoped
app.agent_profile_source_check(p_source jsonb) returns void
  -- plpgsql, stable, owner runner_scoped
app.agent_profile_unknown(p_organization_id uuid, p_path text, p_named boolean DEFAULT true) returns jsonb
  -- sql, stable, owner runner_scoped
app.agent_profile_update(p_organization_id uuid, p_agent_profile_id uuid, p_patch jsonb) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.agent_profiles_provision(p_organization_id uuid, p_departments text[], p_revision text, p_kinds text[] DEFAULT
    '{operator,chat,department}'::text[]) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.agent_profiles_wake() returns trigger
  -- plpgsql, owner runner_owner
app.analyst_grant(p_login text, p_organization_ids uuid[], p_all boolean, p_fresh boolean) returns jsonb
  -- plpgsql, security definer, owner runner_global
app.analyst_revoke(p_login text) returns jsonb
  -- plpgsql, security definer, owner runner_global
app.analysts_list() returns jsonb
  -- sql, stable, security definer, owner runner_global
app.answer_issues(p_path text, p_part jsonb, p_answer jsonb, p_onboarding boolean) returns jsonb
  -- plpgsql, immutable, owner runner_scoped
app.audit_append(p_organization_id uuid, p_actor_kind text, p_actor text, p_action text, p_subject_kind text,
    p_subject_id text, p_arguments jsonb, p_response jsonb DEFAULT NULL::jsonb, p_request_id text DEFAULT NULL::text,
    p_result jsonb DEFAULT NULL::jsonb) returns uuid
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api, runner_global
app.audit_bounded(p_value jsonb) returns jsonb
  -- plpgsql, immutable, owner runner_scoped
app.audit_entries_keep() returns trigger
  -- plpgsql, owner runner_owner
app.audit_value(p_value jsonb) returns jsonb
  -- plpgsql, immutable, owner runner_scoped
app.authorization_epoch_raise(p_organization_id uuid) returns void
  -- plpgsql, owner runner_scoped, executed by runner_owner
app.canonical_json(p_value jsonb) returns text
  -- plpgsql, immutable, owner runner_scoped
app.capability_actor(p_organization_id uuid, p_token_hash text, p_lock boolean) returns jsonb
  -- plpgsql, owner runner_scoped
app.capability_check(p_organization_id uuid, p_token_hash text) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.chat_attachment_put(p_organization_id uuid, p_chat_id uuid, p_attachment_id uuid, p_file_name text, p_media_type
    text, p_size_bytes bigint, p_sha256 text, p_storage_key text, p_actor jsonb) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.chat_create(p_organization_id uuid, p_body jsonb, p_actor jsonb) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.chat_delete(p_organization_id uuid, p_chat_id uuid, p_actor jsonb) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.chat_heads(p_organization_id uuid, p_chat_ids uuid[], p_message_ids uuid[], p_revisions integer[]) returns jsonb
  -- plpgsql, security definer, set enable_seqscan=off, set plan_cache_mode=force_generic_plan, owner runner_scoped, executed by runner_api
app.chat_lock(p_organization_id uuid, p_chat_id uuid) returns app.chats
  -- plpgsql, owner runner_scoped
app.chat_pending_reply(p_organization_id uuid, p_chat_id uuid) returns uuid
  -- plpgsql, owner runner_scoped
app.chat_purge(p_organization_id uuid, p_chat_id uuid, p_limit integer, p_forget boolean) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_jobs
app.chat_settings(p_organization_id uuid, p_settings jsonb, p_patch jsonb) returns jsonb
  -- plpgsql, owner runner_scoped
app.chat_turn_cancel(r app.run_requests) returns jsonb
  -- plpgsql, owner runner_scoped
app.chat_turn_complete(r app.run_requests, p_body_hash text, p_output jsonb, p_report jsonb) returns jsonb
  -- plpgsql, owner runner_scoped
app.chat_turn_end_overdue(p_organization_id uuid, p_run_request_id uuid, p_start_seconds integer) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_jobs
app.chat_turn_end_unavailable(r app.run_requests) returns void
  -- plpgsql, owner runner_scoped
app.chat_turn_expire(r app.run_requests) returns jsonb
  -- plpgsql, owner runner_scoped
app.chat_turn_fail(r app.run_requests, p_body_hash text, p_error jsonb, p_report jsonb) returns jsonb
  -- plpgsql, owner runner_scoped
app.chat_turn_start(r app.run_requests, p_run_id uuid, p_worker_id text, p_lease_seconds integer, p_execution_token
    text) returns jsonb
  -- plpgsql, owner runner_scoped
app.chat_turns_end_unavailable(p_organization_id uuid, p_agent_profile_id uuid) returns void
  -- plpgsql, owner runner_scoped
app.chat_update(p_organization_id uuid, p_chat_id uuid, p_patch jsonb, p_actor jsonb) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.chats_expired(p_organizations integer, p_rows integer, p_after uuid DEFAULT NULL::uuid) returns
    TABLE(organization_id uuid, chat_id uuid)
  -- sql, stable, security definer, owner runner_global, executed by runner_jobs
app.chats_search(p_organization_id uuid, p_search text, p_status text, p_last_message_at_us bigint, p_id uuid,
    p_inclusive boolean, p_backward boolean, p_limit integer) returns SETOF app.chats
  -- plpgsql, stable, security definer, owner runner_global, executed by runner_api
app.chats_wake() returns trigger
  -- plpgsql, owner runner_owner
app.chats_with_grams(p_organization_id uuid, p_grams text[], OUT chat_ids uuid[], OUT message_count bigint, OUT
    chunk_chat_ids uuid[]) returns record
  -- sql, stable, set enable_sort=off, owner runner_scoped, executed by runner_global
app.context_health_due(p_hours integer, p_after uuid, p_limit integer) returns SETOF uuid
  -- sql, stable, security definer, owner runner_global, executed by runner_jobs
app.context_health_record(p_organization_id uuid, p_report jsonb) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_jobs
app.context_promote(p_organization_id uuid, p_scope text, p_base_revision integer, p_documents jsonb, p_actor jsonb,
    p_task_ref text DEFAULT NULL::text) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.context_rows_keep() returns trigger
  -- plpgsql, owner runner_owner
app.context_source_delete(p_organization_id uuid, p_source_id uuid) returns text
  -- plpgsql, owner runner_scoped
app.context_source_insert(p_organization_id uuid, p_source jsonb) returns app.context_sources
  -- plpgsql, owner runner_scoped
app.context_source_mark(p_organization_id uuid, p_source_id uuid, p_status text, p_error jsonb) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api, runner_jobs
app.context_source_retain(p_organization_id uuid, p_source jsonb, p_actor jsonb) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.context_sources_keep() returns trigger
  -- plpgsql, owner runner_owner
app.currency_rate_read(p_currency text, p_day date, p_base text DEFAULT 'EUR') returns jsonb
  -- sql, stable, security definer, owner runner_global, executed by runner_api
app.currency_rates_claim(p_seconds integer) returns jsonb
  -- plpgsql, security definer, owner runner_global, executed by runner_jobs
app.currency_rates_fail(p_fence integer, p_error_code text, p_not_before timestamptz, p_first_seconds integer,
    p_longest_seconds integer) returns jsonb
  -- plpgsql, security definer, owner runner_global, executed by runner_jobs
app.currency_rates_store(p_fence integer, p_days jsonb, p_is_history boolean, p_due_at timestamptz DEFAULT
    NULL::timestamptz) returns jsonb
  -- plpgsql, security definer, owner runner_global, executed by runner_jobs
app.current_organization() returns uuid
  -- sql, stable, parallel safe, no search path, owner runner_owner, executed by public
app.dispatch_due(p_organizations integer DEFAULT 100, p_rows integer DEFAULT 50, p_after jsonb DEFAULT '{}',
    p_chat_start_seconds integer DEFAULT 300) returns TABLE(kind text, organization_id uuid, ids uuid[])
  -- sql, stable, security definer, owner runner_global, executed by runner_jobs
app.dispatch_settle(p_organization_id uuid) returns integer
  -- plpgsql, owner runner_scoped
app.dispatch_totals() returns jsonb
  -- sql, stable, security definer, owner runner_global, executed by runner_api
app.dispatch_wake() returns trigger
  -- plpgsql, owner runner_owner
app.due_in_turns(p_table text, p_time text, p_condition text, p_before timestamptz, p_after uuid, p_organizations
    integer, p_rows integer, p_id text DEFAULT 'id') returns TABLE(organization_id uuid, id uuid, due_at timestamptz)
  -- plpgsql, stable, owner runner_scoped, executed by runner_global
app.enqueue(p_task text, p_payload jsonb, p_job_key text DEFAULT NULL::text, p_max_attempts integer DEFAULT 25) returns
    void
  -- plpgsql, security definer, owner the migrating login, executed by runner_scoped
app.fail(p_status integer, p_code text, p_message text, p_issues jsonb DEFAULT NULL::jsonb) returns void
  -- plpgsql, owner runner_scoped, executed by runner_global
app.human_inbox_acknowledge(p_organization_id uuid, p_inbox_item_id uuid) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.human_inbox_item_create(p_organization_id uuid, p_task_ref text, p_item jsonb, p_actor jsonb) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.human_inbox_item_lock(p_organization_id uuid, p_inbox_item_id uuid) returns app.human_inbox_items
  -- plpgsql, owner runner_scoped
app.human_inbox_item_tasks(p_organization_id uuid, p_inbox_item_id uuid) returns uuid[]
  -- sql, stable, owner runner_scoped
app.human_inbox_items_mark_run() returns trigger
  -- plpgsql, owner runner_owner
app.human_inbox_open_counts() returns jsonb
  -- sql, stable, security definer, owner runner_global, executed by runner_api
app.human_inbox_prerequisite(i app.human_inbox_items) returns void
  -- plpgsql, owner runner_scoped
app.human_inbox_respond(p_organization_id uuid, p_inbox_item_id uuid, p_response text, p_note text) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.idempotency_begin(p_organization_id uuid, p_caller text, p_method text, p_path text, p_key text, p_body_hash text,
    p_claim_id uuid DEFAULT NULL::uuid, p_claim_seconds integer DEFAULT NULL::integer) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.idempotency_finish(p_organization_id uuid, p_caller text, p_method text, p_path text, p_key text, p_status integer,
    p_body jsonb, p_claim_id uuid DEFAULT NULL::uuid) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.idempotency_keys_clean(p_organizations integer, p_rows integer, p_after uuid DEFAULT NULL::uuid) returns jsonb
  -- plpgsql, security definer, owner runner_global, executed by runner_jobs
app.idempotency_release(p_organization_id uuid, p_caller text, p_method text, p_path text, p_key text, p_claim_id uuid)
    returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.idempotency_renew(p_organization_id uuid, p_caller text, p_method text, p_path text, p_key text, p_claim_id uuid,
    p_claim_seconds integer) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.initiative_close(p_organization_id uuid, p_task_id uuid) returns void
  -- plpgsql, owner runner_scoped
app.initiative_replan(p_organization_id uuid, p_task_id uuid, p_reason jsonb) returns void
  -- plpgsql, owner runner_scoped
app.insight_backoff(p_failures integer) returns interval
  -- sql, immutable, owner runner_scoped
app.insight_compaction_claim(p_organization_id uuid, p_source_id uuid, p_month text, p_adapters jsonb, p_limits jsonb,
    p_seconds integer) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_jobs
app.insight_compaction_commit(p_organization_id uuid, p_source_id uuid, p_month text, p_compaction_id uuid, p_fence
    bigint, p_result jsonb) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_jobs
app.insight_compaction_end(p_organization_id uuid, p_source_id uuid, p_month text, p_compaction_id uuid, p_fence bigint,
    p_error jsonb DEFAULT NULL::jsonb) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_jobs
app.insight_compaction_failed(k app.insight_compactions, p_error jsonb, p_since timestamptz) returns void
  -- sql, owner runner_scoped
app.insight_compaction_lock(p_organization_id uuid, p_source_id uuid, p_month text, p_compaction_id uuid, p_fence
    bigint) returns app.insight_compactions
  -- plpgsql, owner runner_scoped
app.insight_compactions_due(p_segments integer, p_organizations integer, p_rows integer, p_after uuid DEFAULT
    NULL::uuid) returns jsonb
  -- sql, stable, security definer, owner runner_global, executed by runner_jobs
app.insight_connector_settle(p_organization_id uuid, p_integration_id uuid) returns void
  -- plpgsql, owner runner_scoped
app.insight_connectors_wake() returns trigger
  -- plpgsql, owner runner_owner
app.insight_cursor_refreshes(u app.insight_cursors, p_now timestamptz) returns boolean
  -- sql, stable, owner runner_scoped
app.insight_expiries_due(p_hours integer, p_organizations integer, p_after uuid DEFAULT NULL::uuid) returns
    TABLE(organization_id uuid)
  -- sql, stable, security definer, owner runner_global, executed by runner_jobs
app.insight_generation(i app.integrations, p_authorization_epoch integer, p_adapter_version integer, p_schema_version
    integer) returns text
  -- sql, immutable, owner runner_scoped
app.insight_objects_named(p_organization_id uuid, p_keys text[]) returns jsonb
  -- plpgsql, stable, security definer, owner runner_scoped, executed by runner_jobs
app.insight_pseudonym_key_read(p_organization_id uuid, p_sealed jsonb DEFAULT NULL::jsonb) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_jobs
app.insight_refresh(p_organization_id uuid, p_connector_key text, p_providers jsonb, p_actor jsonb) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.insight_refresh_require(p_organization_id uuid, p_actor jsonb) returns app.organizations
  -- plpgsql, owner runner_scoped
app.insight_rounds_begin(p_organization_id uuid, p_source_id uuid, p_modes jsonb) returns void
  -- plpgsql, owner runner_scoped
app.insight_scope(i app.integrations) returns text
  -- sql, immutable, owner runner_scoped
app.insight_segments_expired(p_organization_id uuid, p_hours integer, p_rows integer, p_after jsonb DEFAULT NULL::jsonb)
    returns jsonb
  -- plpgsql, stable, security definer, owner runner_scoped, executed by runner_jobs
app.insight_segments_read(p_organization_id uuid, p_source_id uuid, p_from text DEFAULT NULL::text, p_to text DEFAULT
    NULL::text, p_revision bigint DEFAULT NULL::bigint) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_jobs
app.insight_segments_remove(p_organization_id uuid, p_hours integer, p_keys text[]) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_jobs
app.insight_source_record(s app.insight_sources) returns jsonb
  -- plpgsql, stable, owner runner_scoped
app.insight_source_status(s app.insight_sources, o app.organizations, i app.integrations, c app.integration_connections)
    returns text
  -- sql, immutable, owner runner_scoped
app.insight_sources_put(p_organization_id uuid, p_unit_id uuid, p_fence bigint, p_sources jsonb, p_next_seconds integer)
    returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_jobs
app.insight_staged_drop(p_organization_id uuid, p_source_id uuid, p_mode text) returns void
  -- sql, owner runner_scoped
app.insight_staged_read(p_organization_id uuid, p_source_id uuid) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_jobs
app.insight_sweep_begin(p_organization_id uuid) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_jobs
app.insight_sweeps_due(p_organizations integer, p_after uuid DEFAULT NULL::uuid) returns TABLE(organization_id uuid)
  -- sql, stable, security definer, owner runner_global, executed by runner_jobs
app.insight_totals() returns jsonb
  -- sql, stable, security definer, owner runner_global, executed by runner_jobs
app.insight_unit_claim(p_organization_id uuid, p_integration_id uuid, p_adapters jsonb, p_active integer, p_seconds
    integer) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_jobs
app.insight_unit_commit(p_organization_id uuid, p_unit_id uuid, p_fence bigint, p_result jsonb) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_jobs
app.insight_unit_end(u app.insight_units, p_state text, p_facts jsonb DEFAULT '{}') returns void
  -- plpgsql, owner runner_scoped
app.insight_unit_fail(p_organization_id uuid, p_unit_id uuid, p_fence bigint, p_error jsonb, p_retry_not_before
    timestamptz, p_restart jsonb) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_jobs
app.insight_unit_failed(u app.insight_units, p_state text, p_error jsonb, p_retry_not_before timestamptz) returns void
  -- plpgsql, owner runner_scoped
app.insight_unit_lock(p_organization_id uuid, p_unit_id uuid, p_fence bigint) returns app.insight_units
  -- plpgsql, owner runner_scoped
app.insight_unit_release(p_organization_id uuid, p_unit_id uuid, p_fence bigint) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_jobs
app.insight_units_clean(p_rows integer) returns jsonb
  -- plpgsql, security definer, owner runner_global, executed by runner_jobs
app.insights_due(p_organizations integer, p_rows integer, p_after uuid DEFAULT NULL::uuid) returns TABLE(organization_id
    uuid, id uuid)
  -- sql, stable, security definer, owner runner_global, executed by runner_jobs
app.integration_agent_get(p_organization_id uuid, p_actor jsonb, p_authorization_epoch integer, p_integration_ref text)
    returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.integration_agent_require(p_organization_id uuid, p_actor jsonb, p_authorization_epoch integer) returns
    app.agent_profiles
  -- plpgsql, owner runner_scoped
app.integration_capability_check(p_organization_id uuid, p_token_hash text, p_integration_id uuid, p_kind text) returns
    jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.integration_capability_find(p_token_hash text) returns jsonb
  -- sql, stable, security definer, owner runner_global, executed by runner_api
app.integration_connect(p_organization_id uuid, p_integration_ref text, p_revision integer, p_next_revision integer,
    p_connection jsonb, p_secrets jsonb, p_replace_account boolean) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.integration_connection_drop(i app.integrations) returns app.integrations
  -- plpgsql, owner runner_scoped
app.integration_connection_lock(i app.integrations, p_connection_revision integer) returns app.integration_connections
  -- plpgsql, owner runner_scoped
app.integration_connection_plan(p_organization_id uuid, p_integration_ref text, p_connection jsonb) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.integration_connection_write(i app.integrations, p_next_revision integer, p_connection jsonb, p_secrets jsonb,
    p_replace_account boolean) returns jsonb
  -- plpgsql, owner runner_scoped
app.integration_connections_raise_epoch() returns trigger
  -- plpgsql, owner runner_owner
app.integration_context_mapping_put(p_organization_id uuid, p_integration_ref text, p_mapping jsonb) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.integration_context_repair_finish(p_organization_id uuid, p_repair_id uuid, p_mapping jsonb, p_report_revision
    integer) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_jobs
app.integration_create(p_organization_id uuid, p_integration jsonb) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.integration_delete(p_organization_id uuid, p_integration_ref text) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.integration_disconnect(p_organization_id uuid, p_integration_ref text) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.integration_discovery_record(p_organization_id uuid, p_integration_ref text, p_connection_revision integer,
    p_discovery jsonb, p_tools jsonb DEFAULT NULL::jsonb) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api, runner_jobs
app.integration_find(p_organization_id uuid, p_integration_ref text) returns app.integrations
  -- plpgsql, owner runner_scoped
app.integration_flows_clean(p_rows integer) returns jsonb
  -- plpgsql, security definer, owner runner_global, executed by runner_jobs
app.integration_for_agent(i app.integrations, p app.agent_profiles, p_allowed jsonb) returns jsonb
  -- plpgsql, stable, owner runner_scoped
app.integration_git_check(p_organization_id uuid, p_token_hash text, p_integration_id uuid) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.integration_grant_delete(p_organization_id uuid, p_grant_hash text, p_connections jsonb, p_revoked boolean,
    p_began_at timestamptz) returns jsonb
  -- plpgsql, security definer, owner runner_global, executed by runner_api
app.integration_grant_read(p_organization_id uuid, p_integration_ref text) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.integration_grant_unlink(p_organization_id uuid, p_grant_hash text, p_connections jsonb, p_began_at timestamptz)
    returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_global
app.integration_grant_withdraw(p_organization_id uuid, p_grant_hash text, p_began_at timestamptz) returns boolean
  -- plpgsql, security definer, owner runner_scoped, executed by runner_global
app.integration_health_mark(p_organization_id uuid, p_integration_id uuid, p_connection_revision integer, p_health
    jsonb, p_check_seconds integer) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api, runner_jobs
app.integration_hosts_blocked(p_organization_id uuid, p_hosts jsonb) returns boolean
  -- sql, stable, owner runner_scoped
app.integration_lock(p_organization_id uuid, p_integration_ref text, p_epoch boolean) returns app.integrations
  -- plpgsql, owner runner_scoped
app.integration_next_revision(i app.integrations, c app.integration_connections, p_connection jsonb) returns integer
  -- sql, stable, owner runner_scoped
app.integration_oauth_begin(p_organization_id uuid, p_ticket_hash text, p_begin jsonb) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.integration_oauth_complete(p_organization_id uuid, p_integration_id uuid, p_flow_id uuid, p_next_revision integer,
    p_connection jsonb, p_secrets jsonb) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.integration_oauth_consume(p_organization_id uuid, p_flow_id uuid, p_provider text, p_browser_hash text, p_starter
    text) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.integration_oauth_end(p_organization_id uuid, p_flow_id uuid, p_result text) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.integration_oauth_find(p_kind text, p_hash text) returns jsonb
  -- sql, stable, security definer, owner runner_global, executed by runner_api
app.integration_oauth_flow(o app.integration_oauth_states) returns jsonb
  -- sql, stable, owner runner_scoped
app.integration_oauth_start(p_organization_id uuid, p_integration_ref text, p_flow jsonb) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.integration_oauth_ticket(p_organization_id uuid, p_ticket_hash text) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.integration_provider_allowed(p_organization_id uuid, p_provider text) returns boolean
  -- sql, stable, owner runner_scoped
app.integration_provider_require(p_organization_id uuid, p_provider text) returns void
  -- plpgsql, owner runner_scoped
app.integration_read(p_organization_id uuid, p_integration_ref text) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.integration_readiness(i app.integrations, c app.integration_connections) returns text
  -- sql, immutable, owner runner_scoped
app.integration_reauthorization_mark(p_organization_id uuid, p_integration_id uuid, p_connection_revision integer,
    p_token_version integer, p_reason text) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api, runner_jobs
app.integration_record(i app.integrations) returns jsonb
  -- plpgsql, stable, owner runner_scoped
app.integration_refresh_lease(p_organization_id uuid, p_integration_id uuid, p_connection_revision integer,
    p_token_version integer, p_lease_id uuid, p_seconds integer) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api, runner_jobs
app.integration_resolve(p_organization_id uuid, p_actor jsonb, p_authorization_epoch integer, p_integration_ref text,
    p_kind text, p_token_hash text, p_run_id uuid, p_seconds integer, p_git_providers jsonb) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.integration_revision_require(i app.integrations, p_connection_revision integer) returns void
  -- plpgsql, owner runner_scoped
app.integration_scopes_cover(p_granted jsonb, p_required jsonb) returns boolean
  -- sql, immutable, owner runner_scoped
app.integration_scopes_note(p_organization_id uuid, p_integration_id uuid, p_connection_revision integer, p_scopes
    jsonb) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api, runner_jobs
app.integration_secret_rewrap(p_organization_id uuid, p_secret jsonb, p_key_id text, p_wrapped_key text) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_global
app.integration_secrets_by_key() returns jsonb
  -- sql, stable, security definer, owner runner_global
app.integration_secrets_read(p_organization_id uuid, p_integration_id uuid, p_connection_revision integer) returns jsonb
  -- plpgsql, stable, security definer, owner runner_scoped, executed by runner_api, runner_jobs
app.integration_secrets_to_rewrap(p_key_ids text[], p_after jsonb, p_limit integer) returns jsonb
  -- sql, stable, security definer, owner runner_global
app.integration_secrets_write(p_organization_id uuid, p_integration_id uuid, p_revision integer, p_secrets jsonb)
    returns void
  -- sql, owner runner_scoped
app.integration_settings_put(p_organization_id uuid, p_integration_ref text, p_connection_revision integer, p_settings
    jsonb, p_disconnect boolean, p_forget_tools boolean) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.integration_status_set(p_organization_id uuid, p_integration_ref text, p_status text) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.integration_tokens_rotate(p_organization_id uuid, p_integration_id uuid, p_connection_revision integer,
    p_token_version integer, p_tokens jsonb, p_secrets jsonb) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api, runner_jobs
app.integration_tool_unavailable(i app.integrations, c app.integration_connections, t app.integration_tools) returns
    text
  -- sql, immutable, owner runner_scoped
app.integration_tools_put(p_organization_id uuid, p_integration_ref text, p_change jsonb) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.integration_tools_raise_epoch() returns trigger
  -- plpgsql, owner runner_owner
app.integration_tools_write(p_organization_id uuid, p_integration_id uuid, p_tools jsonb) returns void
  -- sql, owner runner_scoped
app.integration_unavailable(i app.integrations, c app.integration_connections, p app.agent_profiles, p_allowed jsonb)
    returns text
  -- sql, immutable, owner runner_scoped
app.integration_update(p_organization_id uuid, p_integration_ref text, p_patch jsonb) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.integrations_due(p_kind text, p_organizations integer, p_rows integer, p_after uuid DEFAULT NULL::uuid) returns
    TABLE(organization_id uuid, id uuid)
  -- plpgsql, stable, security definer, owner runner_global, executed by runner_jobs
app.integrations_for_agent(p_organization_id uuid, p_actor jsonb, p_authorization_epoch integer, p_key text, p_inclusive
    boolean, p_backward boolean, p_limit integer) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.integrations_items(p_organization_id uuid, p_key text, p_inclusive boolean, p_backward boolean, p_limit integer,
    p_for_agent boolean, p app.agent_profiles, p_allowed jsonb) returns jsonb
  -- plpgsql, stable, owner runner_scoped
app.integrations_list(p_organization_id uuid, p_key text, p_inclusive boolean, p_backward boolean, p_limit integer)
    returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.integrations_page(p_organization_id uuid, p_key text, p_inclusive boolean, p_backward boolean, p_limit integer)
    returns SETOF app.integrations
  -- plpgsql, stable, owner runner_scoped
app.integrations_raise_epoch() returns trigger
  -- plpgsql, owner runner_owner
app.integrations_reconcile_read(p_organization_id uuid) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_jobs
app.issue(p_path text, p_code text, p_message text) returns jsonb
  -- sql, immutable, owner runner_scoped, executed by runner_global
app.lease_is_current(r app.run_requests, p_lease_token text) returns boolean
  -- plpgsql, owner runner_scoped
app.lease_refuse(p_reason text) returns void
  -- plpgsql, owner runner_scoped
app.merge_patch(p_target jsonb, p_patch jsonb) returns jsonb
  -- plpgsql, immutable, owner runner_scoped
app.message_answers(p_organization_id uuid, p_chat_id uuid, p_onboarding boolean, m app.messages, p_answers jsonb, OUT
    parts jsonb, OUT issues jsonb) returns record
  -- plpgsql, owner runner_scoped
app.message_cancel(p_organization_id uuid, p_chat_id uuid, p_message_id uuid, p_actor jsonb) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.message_chunks_begin(m app.messages) returns void
  -- plpgsql, owner runner_scoped
app.message_chunks_due(p_organizations integer, p_rows integer, p_after uuid DEFAULT NULL::uuid) returns
    TABLE(organization_id uuid, message_id uuid)
  -- sql, stable, security definer, owner runner_global, executed by runner_jobs
app.message_chunks_fill(p_organization_id uuid, p_message_id uuid, p_limit integer) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_jobs
app.message_chunks_postpone(p_organization_id uuid, p_message_id uuid) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_jobs
app.message_create(p_organization_id uuid, p_chat_id uuid, p_body jsonb, p_actor jsonb) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.message_end(p_organization_id uuid, p_message_id uuid, p_status text, p_error jsonb, p_parts jsonb DEFAULT
    NULL::jsonb) returns app.messages
  -- plpgsql, owner runner_scoped
app.message_parts(p_path text, p_old jsonb, p_new jsonb) returns jsonb
  -- plpgsql, owner runner_scoped
app.message_row(m app.messages) returns jsonb
  -- sql, stable, owner runner_scoped
app.messages_check(r app.messages) returns boolean
  -- plpgsql, immutable, no search path, owner runner_owner, executed by runner_global, runner_scoped
app.messages_keep_revision() returns trigger
  -- plpgsql, owner runner_owner
app.messages_wake() returns trigger
  -- plpgsql, owner runner_owner
app.onboarding_chat_lock(p_organization_id uuid, p_actor jsonb) returns app.onboardings
  -- plpgsql, owner runner_scoped
app.onboarding_complete(p_organization_id uuid, p_review_sha256 text, p_allow_warnings boolean, p_documents jsonb,
    p_providers jsonb DEFAULT '[]') returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.onboarding_config(p_setup jsonb) returns jsonb
  -- sql, immutable, owner runner_scoped
app.onboarding_create(p_organization_id uuid DEFAULT app.uuid_v7(), p_fields jsonb DEFAULT '{}', p_subject text DEFAULT
    NULL::text) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.onboarding_discard(p_organization_id uuid) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.onboarding_disposition_put(p_organization_id uuid, p_expected_generation integer, p_integration_key text,
    p_disposition text, p_departments jsonb) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.onboarding_evidence_add(p_organization_id uuid, p_generation integer, p_source jsonb, p_actor jsonb DEFAULT
    NULL::jsonb) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api, runner_jobs
app.onboarding_evidence_drop(p_organization_id uuid) returns jsonb
  -- plpgsql, owner runner_scoped
app.onboarding_findings_add(p_organization_id uuid, p_findings jsonb, p_warnings jsonb, p_actor jsonb) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.onboarding_findings_insert(p_organization_id uuid, p_findings jsonb, p_origin text) returns void
  -- plpgsql, owner runner_scoped
app.onboarding_integration_usable(p_organization_id uuid, p_integration_key text) returns boolean
  -- sql, stable, owner runner_scoped
app.onboarding_integrations_create(o app.onboardings, p_providers jsonb) returns void
  -- sql, owner runner_scoped
app.onboarding_lock(p_organization_id uuid, p_generation integer, p_allowed text[]) returns app.onboardings
  -- plpgsql, owner runner_scoped
app.onboarding_read(p_organization_id uuid) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api, runner_jobs
app.onboarding_require_running(p_organization_id uuid) returns void
  -- plpgsql, owner runner_scoped
app.onboarding_research_begin(p_organization_id uuid, p_generation integer) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_jobs
app.onboarding_research_finish(p_organization_id uuid, p_generation integer, p_outcome jsonb) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_jobs
app.onboarding_research_lock(p_organization_id uuid, p_generation integer) returns app.onboardings
  -- plpgsql, owner runner_scoped
app.onboarding_research_queue(o app.onboardings) returns app.onboardings
  -- plpgsql, owner runner_scoped
app.onboarding_research_retry(p_organization_id uuid, p_expected_generation integer) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.onboarding_review(o app.onboardings) returns jsonb
  -- plpgsql, owner runner_scoped
app.onboarding_setup_update(p_organization_id uuid, p_expected_generation integer, p_patch jsonb) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.onboarding_source_delete(p_organization_id uuid, p_source_id uuid) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.onboarding_source_put(p_organization_id uuid, p_source jsonb) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.onboarding_start(p_organization_id uuid) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.onboarding_state(o app.onboardings) returns jsonb
  -- plpgsql, owner runner_scoped
app.onboarding_write(n app.onboardings) returns app.onboardings
  -- plpgsql, owner runner_scoped
app.organization_create(p_organization_id uuid, p_fields jsonb, p_subject text) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.organization_defaults(p_organization_id uuid) returns jsonb
  -- sql, immutable, owner runner_scoped
app.organization_delete(p_organization_id uuid) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.organization_member_delete(p_organization_id uuid, p_subject text) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.organization_member_put(p_organization_id uuid, p_subject text, p_role text) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.organization_purge(p_organization_id uuid, p_limit integer, p_forget boolean) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_jobs
app.organization_slug_free(p_base text) returns text
  -- plpgsql, security definer, owner runner_global, executed by runner_scoped
app.organization_update(p_organization_id uuid, p_patch jsonb, p_platform boolean) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.organizations_deleted() returns uuid[]
  -- sql, stable, parallel safe, security definer, owner runner_global, executed by runner_admin
app.organizations_list(p_subject text, p_status text, p_created_at_us bigint, p_id uuid, p_inclusive boolean, p_backward
    boolean, p_limit integer) returns SETOF app.organizations
  -- plpgsql, stable, security definer, owner runner_global, executed by runner_api
app.outcome_evidence(p_organization_id uuid, p_evidence jsonb, OUT evidence jsonb, OUT issues jsonb) returns record
  -- sql, stable, owner runner_scoped
app.output_claim_issue(p_claim jsonb, p_stored jsonb, p_at text) returns jsonb
  -- plpgsql, immutable, owner runner_scoped
app.output_evidence(o app.run_outputs) returns jsonb
  -- sql, stable, owner runner_scoped
app.parts_raw(p_parts jsonb) returns text
  -- sql, immutable, owner runner_scoped
app.parts_text(p_parts jsonb) returns text
  -- sql, immutable, owner runner_scoped
app.plan_apply(p_organization_id uuid, t app.tasks, p_run_id uuid, p_operations jsonb) returns jsonb
  -- plpgsql, owner runner_scoped
app.plan_issues(p_organization_id uuid, t app.tasks, p_operations jsonb) returns jsonb
  -- plpgsql, stable, set work_mem=1MB, owner runner_scoped
app.plan_resolve(p_organization_id uuid, p_operations jsonb) returns jsonb
  -- sql, stable, owner runner_scoped
app.prerequisite_close(p_organization_id uuid, p_task_ids uuid[]) returns void
  -- sql, owner runner_scoped
app.prerequisite_notify(p_organization_id uuid, p_prerequisite_ids uuid[], p_task_id uuid DEFAULT NULL::uuid) returns
    void
  -- sql, owner runner_scoped
app.problem(p_status integer, p_code text, p_message text, p_issues jsonb DEFAULT NULL::jsonb) returns jsonb
  -- sql, immutable, owner runner_scoped, executed by runner_global
app.profiles_lock_shared(p_organization_id uuid) returns void
  -- plpgsql, owner runner_scoped
app.questions_pending(m app.messages) returns jsonb
  -- sql, immutable, owner runner_scoped
app.rate_limit_buckets_clean(p_rows integer) returns jsonb
  -- plpgsql, security definer, owner runner_global, executed by runner_jobs
app.rate_limit_hold(p_keys text[], p_until timestamptz) returns jsonb
  -- plpgsql, security definer, owner runner_global, executed by runner_api, runner_jobs
app.rate_limit_take(p_buckets jsonb) returns jsonb
  -- plpgsql, security definer, owner runner_global, executed by runner_api, runner_jobs
app.report_shows(p_organization_id uuid, p_all boolean, p_organization_ids uuid[]) returns boolean
  -- plpgsql, immutable, parallel safe, cost 1e-30, no search path, owner runner_owner, executed by runner_analyst, runner_report
app.rule_refuse(p_table text, p_rule text) returns void
  -- plpgsql, immutable, owner runner_owner, executed by runner_global, runner_scoped
app.run_artifacts(p_organization_id uuid, p_run_id uuid, p_artifacts jsonb, OUT artifacts jsonb, OUT outputs jsonb)
    returns record
  -- plpgsql, stable, owner runner_scoped
app.run_attachment(p_organization_id uuid, p_run_id uuid, p_lease_token text, p_attachment_id uuid) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.run_complete(p_organization_id uuid, p_run_id uuid, p_lease_token text, p_body_hash text, p_result jsonb, p_report
    jsonb, p_checks jsonb, p_evaluation_digest text, p_max_attempts integer DEFAULT 3, p_backoff_seconds integer DEFAULT
    10, p_backoff_max_seconds integer DEFAULT 300) returns jsonb
  -- plpgsql, security definer, set enable_seqscan=off, set plan_cache_mode=force_generic_plan, owner runner_scoped, executed by runner_api
app.run_complete_failed(r app.run_requests, t app.tasks, p_body_hash text, p_result jsonb, p_report jsonb) returns jsonb
  -- plpgsql, owner runner_scoped
app.run_complete_needs_input(r app.run_requests, t app.tasks, p_body_hash text, p_result jsonb, p_report jsonb) returns
    jsonb
  -- plpgsql, owner runner_scoped
app.run_complete_plan(r app.run_requests, t app.tasks, o app.task_outcomes, p_body_hash text, p_result jsonb,
    p_artifacts jsonb, p_report jsonb) returns void
  -- plpgsql, owner runner_scoped
app.run_complete_staged(r app.run_requests, t app.tasks, p_body_hash text, p_result jsonb, p_report jsonb,
    p_max_attempts integer, p_backoff_seconds integer, p_backoff_max_seconds integer) returns jsonb
  -- plpgsql, owner runner_scoped
app.run_complete_to_answer(r app.run_requests, p_body_hash text, p_result jsonb, p_report jsonb) returns jsonb
  -- plpgsql, owner runner_scoped
app.run_complete_to_verify(r app.run_requests, p_body_hash text, p_result jsonb, p_report jsonb) returns jsonb
  -- plpgsql, owner runner_scoped
app.run_complete_verdict(r app.run_requests, t app.tasks, o app.task_outcomes, p_body_hash text, p_artifacts jsonb,
    p_report jsonb) returns void
  -- plpgsql, owner runner_scoped
app.run_complete_waiting(r app.run_requests, p_body_hash text, p_result jsonb, p_report jsonb) returns jsonb
  -- plpgsql, owner runner_scoped
app.run_context_snapshot(p_organization_id uuid, p_run_id uuid, t app.tasks, p_mode text) returns void
  -- plpgsql, owner runner_scoped
app.run_conversation(p_organization_id uuid, p_run_id uuid, p_lease_token text, p_limit integer, p_max_bytes integer)
    returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.run_documents_snapshot(p_organization_id uuid, p_run_id uuid, p_department text) returns void
  -- sql, owner runner_scoped
app.run_evaluation_request(p_criteria jsonb, p_outputs jsonb) returns jsonb
  -- plpgsql, immutable, owner runner_scoped
app.run_fail(p_organization_id uuid, p_run_id uuid, p_lease_token text, p_body_hash text, p_error jsonb, p_report jsonb,
    p_max_attempts integer, p_backoff_seconds integer, p_backoff_max_seconds integer) returns jsonb
  -- plpgsql, security definer, set enable_seqscan=off, set plan_cache_mode=force_generic_plan, owner runner_scoped, executed by runner_api
app.run_finish(r app.run_requests, p_status text, p_call text, p_body_hash text, p_output jsonb, p_error jsonb, p_report
    jsonb, p_request_state text DEFAULT 'finished') returns void
  -- plpgsql, owner runner_scoped
app.run_finish_precheck(r app.run_requests, p_run_id uuid, p_lease_token text, p_call text, p_body_hash text, p_report
    jsonb) returns jsonb
  -- plpgsql, owner runner_scoped
app.run_heartbeat(p_organization_id uuid, p_run_id uuid, p_lease_token text, p_lease_seconds integer,
    p_cancel_grace_seconds integer DEFAULT 300) returns jsonb
  -- plpgsql, security definer, set enable_seqscan=off, set plan_cache_mode=force_generic_plan, owner runner_scoped, executed by runner_api
app.run_inputs_snapshot(p_organization_id uuid, p_run_id uuid, t app.tasks) returns void
  -- sql, owner runner_scoped
app.run_lease_check(p_organization_id uuid, p_run_id uuid, p_lease_token text) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.run_logs_append(p_organization_id uuid, p_run_id uuid, p_lease_token text, p_entries jsonb) returns jsonb
  -- plpgsql, security definer, set enable_seqscan=off, set plan_cache_mode=force_generic_plan, owner runner_scoped, executed by runner_api
app.run_logs_check(r app.run_logs) returns boolean
  -- plpgsql, immutable, no search path, owner runner_owner, executed by runner_global, runner_scoped
app.run_message_write(p_organization_id uuid, p_run_id uuid, p_lease_token text, p_base_revision integer, p_parts jsonb,
    p_append text) returns jsonb
  -- plpgsql, security definer, set plan_cache_mode=force_generic_plan, owner runner_scoped, executed by runner_api
app.run_outcome_error(r app.run_requests, t app.tasks, o app.task_outcomes) returns jsonb
  -- plpgsql, stable, owner runner_scoped
app.run_output_record(p_organization_id uuid, p_run_id uuid, p_lease_token text, p_path text, p_layout_key text,
    p_storage_key text, p_size bigint, p_sha256 text, p_media_type text) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.run_request_expire(p_organization_id uuid, p_run_request_id uuid, p_max_attempts integer, p_backoff_seconds integer,
    p_backoff_max_seconds integer) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_jobs
app.run_request_lease_end(r app.run_requests, p_max_attempts integer, p_backoff_seconds integer, p_backoff_max_seconds
    integer) returns jsonb
  -- plpgsql, owner runner_scoped
app.run_request_lock(p_organization_id uuid, p_run_id uuid) returns app.run_requests
  -- plpgsql, owner runner_scoped
app.run_request_release(p_organization_id uuid, p_run_request_id uuid, p_lease_token text) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.run_request_retry_or_fail(r app.run_requests, p_error jsonb, p_max_attempts integer, p_backoff_seconds integer,
    p_backoff_max_seconds integer) returns void
  -- plpgsql, owner runner_scoped
app.run_requests_check(r app.run_requests) returns boolean
  -- plpgsql, immutable, no search path, owner runner_owner, executed by runner_global, runner_scoped
app.run_requests_count() returns trigger
  -- plpgsql, security definer, owner runner_scoped, executed by runner_owner
app.run_requests_counts(p_old text, p_new text) returns boolean
  -- plpgsql, immutable, no search path, owner runner_owner, executed by runner_global, runner_scoped
app.run_requests_ensure(p_organization_id uuid, p_task_ids uuid[]) returns void
  -- plpgsql, owner runner_scoped
app.run_requests_publish(p_organization_id uuid, p_run_request_ids uuid[]) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_jobs
app.run_requests_pull(p_worker_ids text[], p_organization_ids uuid[], p_profile_keys text[], p_kinds text[],
    p_claim_seconds integer) returns jsonb
  -- plpgsql, security definer, set enable_seqscan=off, set plan_cache_mode=force_generic_plan, owner runner_global, executed by runner_api
app.run_requests_wake() returns trigger
  -- plpgsql, owner runner_owner
app.run_requests_wake_stop() returns trigger
  -- plpgsql, owner runner_owner
app.run_roots_lock(p_organization_id uuid, p_run_id uuid) returns app.tasks
  -- plpgsql, owner runner_scoped
app.run_running(p_organization_id uuid, p_run_id uuid, p_lease_token text, p_harness text, p_model text, p_workspace_uri
    text) returns jsonb
  -- plpgsql, security definer, set enable_seqscan=off, set plan_cache_mode=force_generic_plan, owner runner_scoped, executed by runner_api
app.run_start(p_organization_id uuid, p_run_request_id uuid, p_run_id uuid, p_lease_token text, p_worker_id text,
    p_lease_seconds integer) returns jsonb
  -- plpgsql, security definer, set enable_seqscan=off, set plan_cache_mode=force_generic_plan, owner runner_scoped, executed by runner_api
app.run_start_response(r app.run_requests, p_execution_token text) returns jsonb
  -- plpgsql, stable, owner runner_scoped
app.run_task_ids(p_organization_id uuid, p_run_id uuid, p_task_id uuid) returns uuid[]
  -- sql, stable, owner runner_scoped
app.runs_check(r app.runs) returns boolean
  -- plpgsql, immutable, no search path, owner runner_owner, executed by runner_global, runner_scoped
app.schedule_create(p_organization_id uuid, p_schedule jsonb, p_next_run_at timestamptz, p_actor jsonb) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.schedule_delete(p_organization_id uuid, p_schedule_ref text, p_actor jsonb) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.schedule_find(p_organization_id uuid, p_schedule_ref text) returns app.schedules
  -- sql, owner runner_scoped
app.schedule_fire(p_organization_id uuid, p_schedule_id uuid, p_fire_at timestamptz, p_version integer, p_next_run_at
    timestamptz, p_now timestamptz DEFAULT clock_timestamp()) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_jobs
app.schedule_mark_failing(s app.schedules, p_reason text, p_now timestamptz) returns void
  -- plpgsql, owner runner_scoped
app.schedule_pause(p_organization_id uuid, p_schedule_ref text, p_actor jsonb) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.schedule_resume(p_organization_id uuid, p_schedule_ref text, p_next_run_at timestamptz, p_version integer, p_actor
    jsonb) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.schedule_template_refusal(p_organization_id uuid, p_template jsonb, p_actor jsonb) returns jsonb
  -- plpgsql, owner runner_scoped
app.schedule_update(p_organization_id uuid, p_schedule_ref text, p_expected_version integer, p_patch jsonb,
    p_next_run_at timestamptz, p_actor jsonb) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.search_fold(p_text text) returns text
  -- plpgsql, immutable, strict, parallel safe, owner runner_owner, executed by runner_global, runner_scoped
app.search_grams(p_text text) returns text[]
  -- plpgsql, immutable, parallel safe, cost 10000, owner runner_owner, executed by runner_global, runner_scoped
app.task_accept(i app.human_inbox_items) returns void
  -- plpgsql, owner runner_scoped
app.task_budget_ask(t app.tasks) returns void
  -- plpgsql, owner runner_scoped
app.task_budget_exhausted(p_organization_id uuid, p_task_id uuid) returns boolean
  -- plpgsql, stable, owner runner_scoped
app.task_budget_raise(p_organization_id uuid, p_task_id uuid) returns void
  -- plpgsql, owner runner_scoped
app.task_budgets_exhausted(p_organization_id uuid, p_task_id uuid) returns jsonb
  -- sql, stable, owner runner_scoped
app.task_cancel(p_organization_id uuid, p_task_ref text, p_actor jsonb) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.task_causes(p_organization_id uuid, t app.tasks) returns jsonb
  -- plpgsql, stable, owner runner_scoped
app.task_children(p_organization_id uuid, p_task_id uuid) returns jsonb
  -- sql, stable, owner runner_scoped, executed by runner_global
app.task_completion(t app.tasks, p_run_ids jsonb, p_disposition text, p_checks jsonb) returns jsonb
  -- plpgsql, stable, owner runner_scoped
app.task_create(p_organization_id uuid, p_task jsonb, p_actor jsonb) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.task_dependencies_drop(p_organization_id uuid, p_task_id uuid, p_depends_on_ids uuid[]) returns void
  -- plpgsql, owner runner_scoped
app.task_dependency_add(p_organization_id uuid, p_task_id uuid, p_depends_on_task_id uuid, p_required boolean) returns
    app.task_dependencies
  -- plpgsql, owner runner_scoped
app.task_dependency_create(p_organization_id uuid, p_task_ref text, p_depends_on text, p_required boolean, p_actor
    jsonb) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.task_dependency_delete(p_organization_id uuid, p_task_ref text, p_depends_on text, p_actor jsonb) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.task_exceeds_budget(t app.tasks) returns boolean
  -- sql, immutable, no search path, owner runner_scoped
app.task_explain(p_organization_id uuid, p_task_ref text, p_limit integer DEFAULT 100) returns jsonb
  -- plpgsql, stable, security definer, owner runner_scoped, executed by runner_admin, runner_api
app.task_fail(p_organization_id uuid, p_task_id uuid, p_error jsonb) returns void
  -- plpgsql, owner runner_scoped
app.task_failure_notify(p_organization_id uuid, p_task_id uuid, p_error jsonb) returns void
  -- sql, owner runner_scoped
app.task_failures(p_organization_id uuid, p_task_id uuid) returns jsonb
  -- sql, stable, owner runner_scoped, executed by runner_global
app.task_find(p_organization_id uuid, p_task_ref text) returns uuid
  -- plpgsql, stable, owner runner_scoped, executed by runner_api
app.task_input_put(p_organization_id uuid, p_task_ref text, p_path text, p_storage_key text, p_size bigint, p_sha256
    text, p_media_type text, p_actor jsonb) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.task_is_within(p_organization_id uuid, p_task_id uuid, p_root_of_subtree uuid) returns boolean
  -- sql, stable, owner runner_scoped
app.task_outcome_stage(p_organization_id uuid, p_task_ref text, p_body jsonb, p_body_hash text, p_actor jsonb) returns
    jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.task_profile(p_organization_id uuid, p_task jsonb, p_actor jsonb) returns app.agent_profiles
  -- sql, owner runner_scoped
app.task_repair_ask(t app.tasks, p_run_id uuid, p_body text) returns void
  -- plpgsql, owner runner_scoped
app.task_requests_cancel(p_organization_id uuid, p_task_ids uuid[]) returns void
  -- plpgsql, owner runner_scoped
app.task_retry(p_organization_id uuid, p_task_ref text, p_actor jsonb) returns jsonb
  -- plpgsql, security definer, set plan_cache_mode=force_generic_plan, owner runner_scoped, executed by runner_api
app.task_roots_lock(p_organization_id uuid, p_task_ids uuid[], p_ending boolean) returns void
  -- plpgsql, set enable_seqscan=off, owner runner_scoped
app.task_roots_reached(p_organization_id uuid, p_roots uuid[]) returns uuid[]
  -- sql, stable, owner runner_scoped
app.task_row(p_organization_id uuid, p_task_id uuid) returns jsonb
  -- sql, stable, owner runner_scoped
app.task_settle(p_organization_id uuid, p_task_id uuid) returns void
  -- plpgsql, owner runner_scoped
app.task_source_issues(p_organization_id uuid, p_task jsonb) returns jsonb
  -- sql, stable, owner runner_scoped
app.task_spec_defaults(p_kind text) returns jsonb
  -- sql, immutable, owner runner_scoped
app.task_spend_add(p_organization_id uuid, p_run_id uuid) returns void
  -- sql, owner runner_scoped
app.task_spend_track(p_organization_id uuid, p_root_task_id uuid) returns void
  -- plpgsql, owner runner_scoped
app.task_update(p_organization_id uuid, p_task_ref text, p_expected_version integer, p_patch jsonb, p_actor jsonb)
    returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api
app.task_verifier(p_organization_id uuid, p_spec jsonb, p_executor_profile_id uuid, p_enabled boolean) returns uuid
  -- sql, stable, owner runner_scoped
app.task_verifier_require(p_organization_id uuid, p_spec jsonb, p_executor_profile_id uuid, p_named boolean DEFAULT
    true) returns void
  -- plpgsql, stable, owner runner_scoped
app.tasks_blockers(p_organization_id uuid, p_task_ids uuid[]) returns TABLE(task_id uuid, blockers jsonb)
  -- sql, stable, no search path, owner runner_scoped
app.tasks_cancel(p_organization_id uuid, p_task_ids uuid[], p_origin uuid, p_cancel_origin uuid DEFAULT NULL::uuid)
    returns void
  -- plpgsql, owner runner_scoped
app.tasks_check(r app.tasks) returns boolean
  -- plpgsql, immutable, no search path, owner runner_owner, executed by runner_global, runner_scoped
app.tasks_propagate_end(p_organization_id uuid, p_task_ids uuid[]) returns void
  -- plpgsql, owner runner_scoped
app.tasks_raise_version() returns trigger
  -- plpgsql, owner runner_owner
app.tasks_settle_verification(p_organization_id uuid) returns void
  -- plpgsql, owner runner_scoped
app.tasks_track_spend() returns trigger
  -- plpgsql, owner runner_owner
app.tasks_wake(p_organization_id uuid, p_task_ids uuid[]) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_jobs
app.timezone_matches(p_timezone text, p_instants timestamptz[], p_seconds integer[]) returns boolean
  -- plpgsql, stable, owner runner_scoped, executed by runner_api
app.timezone_or_utc(p_timezone text) returns text
  -- plpgsql, stable, owner runner_report, executed by runner_analyst
app.tokens_held(p_organization_id uuid, p_hashes text[]) returns jsonb
  -- sql, stable, security definer, owner runner_global, executed by runner_api
app.turn_action_parts(p_organization_id uuid, p_message_id uuid, p_parts jsonb) returns jsonb
  -- sql, owner runner_scoped
app.turn_actions(p_organization_id uuid, p_message_id uuid) returns SETOF app.actions
  -- sql, stable, owner runner_scoped
app.turn_parts(r app.run_requests, p_path text, p_parts jsonb) returns jsonb
  -- plpgsql, stable, owner runner_scoped
app.uri_path(p_path text) returns text
  -- sql, immutable, owner runner_scoped
app.uuid_v7() returns uuid
  -- sql, parallel safe, no search path, owner runner_owner, executed by runner_api, runner_global, runner_jobs, runner_scoped
app.wake(p_channel text, p_payload text) returns void
  -- plpgsql, owner runner_scoped
app.work_dispatch_set(p_organization_id uuid, p_stopped boolean, p_actor jsonb) returns jsonb
  -- plpgsql, security definer, owner runner_scoped, executed by runner_api

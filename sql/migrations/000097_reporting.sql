-- Analysts: logins that read the views of schema reporting, and nothing else. The views belong to runner_report, whose
-- policies ask which login has connected (session_user, which `set role` does not change).
do $$
begin
  create role runner_analyst nologin noinherit;
exception when duplicate_object or unique_violation then null;
end
$$;
do $$
begin
  -- As for the roles of the first migration: a superuser needs no membership. Who hands it on to logins becomes a member too.
  if not (select rolsuper from pg_roles where rolname = current_user) then
    execute format('grant runner_analyst to %I', current_user);
  end if;
end
$$;

create schema reporting;
revoke all on schema reporting from public;
grant usage on schema reporting to runner_report, runner_analyst;
comment on schema reporting is 'Views for analysts: stable, documented, and only of the organizations that a login was given.';

set local role runner_owner;

-- Not a tenant's: a login may be given every organization, also those to come.
create table app.analysts (
  login text not null,
  all_organizations boolean not null default false,
  created_at timestamptz not null default now(),
  constraint analysts_pkey primary key (login),
  constraint analysts_login_check check (login ~ '^[a-z][a-z0-9_]*$' and length(login) <= 63)
);
grant select, insert, update, delete on app.analysts to runner_global;
grant select on app.analysts to runner_report;

create table app.analyst_grants (
  organization_id uuid not null,
  login text not null,
  created_at timestamptz not null default now(),
  constraint analyst_grants_pkey primary key (organization_id, login),
  constraint analyst_grants_organization_id_fkey foreign key (organization_id)
    references app.organizations (id) on delete cascade,
  constraint analyst_grants_login_check check (login ~ '^[a-z][a-z0-9_]*$' and length(login) <= 63)
);
create index analyst_grants_login_idx on app.analyst_grants (login, organization_id);
alter table app.analyst_grants enable row level security;
alter table app.analyst_grants force row level security;
create policy owner_all on app.analyst_grants to runner_owner using (true) with check (true);
create policy global_all on app.analyst_grants to runner_global using (true) with check (true);
create policy report_read on app.analyst_grants for select to runner_report using (login = session_user::text);
grant select, insert, delete on app.analyst_grants to runner_global;
grant select on app.analyst_grants to runner_report;

comment on table app.analysts is 'Logins made for analysts. The logins themselves, and their passwords, are Postgres''s.';
comment on column app.analysts.login is 'Name of the login.';
comment on column app.analysts.all_organizations is 'Reads every organization, also those that are made later.';
comment on column app.analysts.created_at is 'When the login was made.';
comment on table app.analyst_grants is 'Which organizations the login of an analyst reads.';
comment on column app.analyst_grants.organization_id is 'The organization.';
comment on column app.analyst_grants.login is 'Name of the login.';
comment on column app.analyst_grants.created_at is 'When it was given.';

-- The one place that judges. An operator, who may become runner_report, sees all; a deleted organization nobody.
create policy report_read on app.organizations for select to runner_report using (
  deleted_at is null
  and ((select pg_has_role(session_user, 'runner_report', 'member')
          or exists (select from app.analysts a where a.login = session_user::text and a.all_organizations))
    or id = any (array(select g.organization_id from app.analyst_grants g where g.login = session_user::text))));

-- Any other table shows the rows of the organizations that can be seen. `= any (array(…))` is asked once a statement and
-- uses the indexes; `in (…)` would not (design/postgres.md 3).
do $$
declare
  v_table text;
begin
  foreach v_table in array array['agent_profiles', 'tasks', 'task_dependencies', 'runs', 'run_logs', 'run_requests', 'chats',
      'messages', 'chat_attachments', 'human_inbox_items', 'schedules', 'context_revisions', 'context_documents',
      'context_publications', 'context_sources', 'onboardings', 'research_findings', 'audit_entries'] loop
    execute format('create policy report_read on app.%I for select to runner_report
      using (organization_id = any (array(select o.id from app.organizations o)))', v_table);
  end loop;
end
$$;

-- Column by column: no text that people or agents wrote besides titles and names, no secret, no file.
grant select (id, slug, name, status, onboarded_at, work_dispatch_stopped_at, config, deleted_at, created_at, updated_at)
  on app.organizations to runner_report;
grant select (organization_id, id, key, name, kind, department, status, config, deleted_at, created_at, updated_at)
  on app.agent_profiles to runner_report;
grant select (organization_id, id, identifier_scope, identifier_number, parent_id, root_task_id, depth,
  owner_agent_profile_id, source_chat_id, source_message_id, schedule_id, created_by_run_id, kind, status, phase, title,
  priority, agent_run_count, consumed_agent_run_count, replan_count, spec, blockers, error, failure_origin_id,
  waiting_until, scheduled_at, due_at, started_at, completed_at, created_at, updated_at)
  on app.tasks to runner_report;
grant select (organization_id, id, task_id, depends_on_task_id, required, created_at)
  on app.task_dependencies to runner_report;
grant select (organization_id, id, kind, task_id, chat_id, message_id, run_request_id, agent_profile_id, attempt, mode,
  status, worker_id, harness, model, log_state, log_count, output, error, input_tokens, output_tokens, tool_calls,
  cost_minor_units, cost_known, started_at, finished_at, created_at)
  on app.runs to runner_report;
grant select (organization_id, run_id, sequence, category, status, occurred_at) on app.run_logs to runner_report;
grant select (organization_id, id, kind, task_id, chat_id, message_id, agent_profile_id, mode, state, priority, attempt,
  due_at, parked, published_at, cancel_requested_at, finished_at, created_at)
  on app.run_requests to runner_report;
grant select (organization_id, id, status, is_onboarding, last_message_at, archived_at, removed_at, created_at, updated_at)
  on app.chats to runner_report;
grant select (organization_id, id, chat_id, reply_to_message_id, role, status, revision, error, completed_at, created_at,
  updated_at)
  on app.messages to runner_report;
grant select (organization_id, chat_id, id, size_bytes) on app.chat_attachments to runner_report;
grant select (organization_id, id, kind, status, purpose, blocking, task_id, run_id, chat_id, schedule_id, responded_at,
  created_at, updated_at)
  on app.human_inbox_items to runner_report;
grant select (organization_id, id, key, title, cron, timezone, status, overlap, next_run_at, last_run_at, last_task_id,
  failing_since, created_at, updated_at)
  on app.schedules to runner_report;
grant select (organization_id, scope, revision, base_revision, created_by, created_at)
  on app.context_revisions to runner_report;
grant select (organization_id, scope, revision, path, size_bytes) on app.context_documents to runner_report;
grant select (organization_id, scope, revision, published_at) on app.context_publications to runner_report;
grant select (organization_id, id, origin, status) on app.context_sources to runner_report;
grant select (organization_id, status, generation, research_status, research_attempts, research_started_at,
  research_finished_at, research_error, research_warnings, created_at, updated_at)
  on app.onboardings to runner_report;
grant select (organization_id, id) on app.research_findings to runner_report;
grant select (organization_id, id, created_at, actor_kind, actor, action, subject_kind, subject_id, outcome, code, request_id)
  on app.audit_entries to runner_report;

-- EXPLAIN shows estimates, and estimates come from samples of all tenants' values, whoever asks. What is text in the views is
-- therefore not sampled; nothing is planned by it.
alter table app.organizations alter column slug set statistics 0, alter column name set statistics 0;
alter table app.agent_profiles alter column key set statistics 0, alter column name set statistics 0;
alter table app.tasks alter column title set statistics 0;
alter table app.runs alter column worker_id set statistics 0, alter column harness set statistics 0,
  alter column model set statistics 0;
alter table app.schedules alter column key set statistics 0, alter column title set statistics 0,
  alter column cron set statistics 0, alter column timezone set statistics 0;
alter table app.audit_entries alter column actor set statistics 0, alter column subject_id set statistics 0,
  alter column request_id set statistics 0;

reset role;

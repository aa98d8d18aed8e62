-- Onboarding of an organization, and what its research found.
set local role runner_owner;

create domain app.onboarding_status as text constraint onboarding_status_check
  check (value in ('collecting', 'researching', 'research_failed', 'review', 'completed', 'discarded'));
create domain app.research_status as text constraint research_status_check
  check (value in ('not_started', 'queued', 'running', 'completed', 'failed'));

create table app.onboardings (
  organization_id uuid not null,
  status app.onboarding_status not null default 'collecting',
  -- Raised by every change that a caller may have to know of; calls say which one they have seen.
  generation integer not null default 1,
  -- {name, website, timezone, defaultCurrency, departments[], summary}
  setup jsonb not null,
  -- [{integrationKey, disposition, departments[]}], ordered by key.
  integrations jsonb not null default '[]',
  chat_id uuid,
  research_status app.research_status not null default 'not_started',
  -- The generation that the attempt was started with. A job that carries another one is out of date and writes nothing.
  research_generation integer,
  research_attempts integer not null default 0,
  research_started_at timestamptz,
  research_finished_at timestamptz,
  research_error jsonb,
  -- [{code, message}] of the last attempt that ended well, and of what the chat asked for since.
  research_warnings jsonb not null default '[]',
  -- {sha256, summary, warnings[]}: what its owner confirms by the completion.
  review jsonb,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint onboardings_pkey primary key (organization_id),
  constraint onboardings_organization_id_fkey foreign key (organization_id)
    references app.organizations (id) on delete cascade,
  constraint onboardings_chat_id_fkey foreign key (organization_id, chat_id)
    references app.chats (organization_id, id) on delete set null (chat_id),
  constraint onboardings_generation_check check (generation >= 1),
  constraint onboardings_setup_check check (jsonb_typeof(setup) = 'object'),
  constraint onboardings_integrations_check check (jsonb_typeof(integrations) = 'array'),
  constraint onboardings_research_when_researching_check
    check ((status = 'researching') = (research_status in ('queued', 'running'))
      or status = 'discarded'),
  constraint onboardings_research_failed_when_failed_check
    check (status <> 'research_failed' or research_status = 'failed'),
  constraint onboardings_research_error_when_failed_check
    check ((research_status = 'failed') = (research_error is not null)),
  constraint onboardings_research_finished_at_when_over_check
    check ((research_status in ('completed', 'failed')) = (research_finished_at is not null)),
  constraint onboardings_research_attempts_check check (research_attempts >= 0),
  constraint onboardings_research_warnings_check check (jsonb_typeof(research_warnings) = 'array'),
  constraint onboardings_review_when_review_check
    check (status not in ('review', 'completed') or review is not null)
);
create index onboardings_chat_id_idx on app.onboardings (organization_id, chat_id);

alter table app.onboardings enable row level security;
alter table app.onboardings force row level security;
create policy owner_all on app.onboardings to runner_owner using (true) with check (true);
create policy scoped_all on app.onboardings to runner_scoped
  using (organization_id = (select app.current_organization()))
  with check (organization_id = (select app.current_organization()));
create policy tenant_read on app.onboardings for select to runner_api, runner_jobs
  using (organization_id = (select app.current_organization()));
create policy admin_read on app.onboardings for select to runner_admin
  using (((select app.current_organization()) is null or organization_id = (select app.current_organization()))
    and organization_id <> all ((select app.organizations_deleted())::uuid[]));
create policy report_read on app.onboardings for select to runner_report
  using (app.report_shows(organization_id,
      (select pg_has_role(session_user, 'runner_report', 'member')
        or exists (select from app.analysts a where a.login = session_user::text
          and a.login_oid = to_regrole(quote_ident(session_user))::oid::bigint and a.all_organizations)),
      array(select g.organization_id from app.analyst_grants g where g.login = session_user::text
        and g.login_oid = to_regrole(quote_ident(session_user))::oid::bigint))
    and organization_id = any (array(select o.id from app.organizations o)));
grant select, insert, update, delete on app.onboardings to runner_scoped;
grant select on app.onboardings to runner_api, runner_jobs;
grant select (organization_id, status, generation, setup, integrations, chat_id, research_status, research_generation,
  research_attempts, research_started_at, research_finished_at, research_error, research_warnings, review, created_at,
  updated_at)
  on app.onboardings to runner_admin;
grant select (organization_id, status, generation, research_status, research_attempts, research_started_at,
  research_finished_at, research_error, research_warnings, created_at, updated_at)
  on app.onboardings to runner_report;
-- Not sampled: no plan is made by it, and EXPLAIN tells estimates of all tenants.
alter table app.onboardings alter generation set statistics 0, alter setup set statistics 0,
  alter integrations set statistics 0, alter research_attempts set statistics 0,
  alter research_error set statistics 0, alter research_warnings set statistics 0, alter review set statistics 0;

comment on table app.onboardings is 'How an organization is created: evidence, research, review, completion.';
comment on column app.onboardings.organization_id is 'The organization it belongs to.';
comment on column app.onboardings.status is 'Where it stands.';
comment on column app.onboardings.generation is 'Rises with every change; calls say which one they have seen.';
comment on column app.onboardings.setup is 'Name, website, time zone, currency, departments, summary.';
comment on column app.onboardings.integrations is 'What was decided about each integration.';
comment on column app.onboardings.chat_id is 'Its chat.';
comment on column app.onboardings.research_status is 'How the research goes.';
comment on column app.onboardings.research_generation is 'The generation that the attempt began with.';
comment on column app.onboardings.research_attempts is 'How often it was tried.';
comment on column app.onboardings.research_started_at is 'When the last attempt began.';
comment on column app.onboardings.research_finished_at is 'When it was over.';
comment on column app.onboardings.research_error is 'Why it failed.';
comment on column app.onboardings.research_warnings is 'What it could not do.';
comment on column app.onboardings.review is 'What its owner confirms by the completion.';
comment on column app.onboardings.created_at is 'When it was made.';
comment on column app.onboardings.updated_at is 'When it was last changed.';

create domain app.research_finding_origin as text constraint research_finding_origin_check
  check (value in ('job', 'chat'));

-- A claim about the organization, and the sources that say so. The sources themselves are app.context_sources.
create table app.research_findings (
  organization_id uuid not null,
  id uuid not null default app.uuid_v7(),
  -- job: of the research of the onboarding, replaced by its next attempt; chat: asked for in the onboarding chat.
  origin app.research_finding_origin not null,
  claim text not null,
  -- Ids of app.context_sources, at least one.
  source_ids jsonb not null,
  created_at timestamptz not null default now(),
  constraint research_findings_pkey primary key (organization_id, id),
  constraint research_findings_organization_id_fkey foreign key (organization_id)
    references app.organizations (id) on delete cascade,
  constraint research_findings_claim_check check (length(claim) between 1 and 2000),
  constraint research_findings_source_ids_check
    check (jsonb_typeof(source_ids) = 'array' and jsonb_array_length(source_ids) > 0)
);
create index research_findings_created_at_idx on app.research_findings (organization_id, created_at, id);

alter table app.research_findings enable row level security;
alter table app.research_findings force row level security;
create policy owner_all on app.research_findings to runner_owner using (true) with check (true);
create policy scoped_all on app.research_findings to runner_scoped
  using (organization_id = (select app.current_organization()))
  with check (organization_id = (select app.current_organization()));
create policy tenant_read on app.research_findings for select to runner_api, runner_jobs
  using (organization_id = (select app.current_organization()));
create policy admin_read on app.research_findings for select to runner_admin
  using (((select app.current_organization()) is null or organization_id = (select app.current_organization()))
    and organization_id <> all ((select app.organizations_deleted())::uuid[]));
create policy report_read on app.research_findings for select to runner_report
  using (app.report_shows(organization_id,
      (select pg_has_role(session_user, 'runner_report', 'member')
        or exists (select from app.analysts a where a.login = session_user::text
          and a.login_oid = to_regrole(quote_ident(session_user))::oid::bigint and a.all_organizations)),
      array(select g.organization_id from app.analyst_grants g where g.login = session_user::text
        and g.login_oid = to_regrole(quote_ident(session_user))::oid::bigint))
    and organization_id = any (array(select o.id from app.organizations o)));
grant select, insert, update, delete on app.research_findings to runner_scoped;
grant select on app.research_findings to runner_api, runner_jobs;
grant select (organization_id, id, origin, claim, source_ids, created_at)
  on app.research_findings to runner_admin;
grant select (organization_id)
  on app.research_findings to runner_report;
-- Not sampled: no plan is made by it, and EXPLAIN tells estimates of all tenants.
alter table app.research_findings alter source_ids set statistics 0;

comment on table app.research_findings is 'Claims about an organization, and the sources that say so.';
comment on column app.research_findings.organization_id is 'The organization it belongs to.';
comment on column app.research_findings.id is 'Id of the finding.';
comment on column app.research_findings.origin is 'job: the research of the onboarding. chat: asked for in its chat.';
comment on column app.research_findings.claim is 'What is claimed.';
comment on column app.research_findings.source_ids is 'The sources that say so.';
comment on column app.research_findings.created_at is 'When it was made.';

reset role;

-- The audit log: what people and administrators decided, kept as long as the organization. Append-only.
set local role runner_owner;

create domain app.audit_actor_kind as text constraint audit_actor_kind_check
  check (value in ('owner', 'operator', 'admin'));
create domain app.audit_outcome as text constraint audit_outcome_check check (value in ('done', 'refused'));

create table app.audit_entries (
  -- All zero: a decision for the whole platform. So there is no foreign key; audit_append looks for the organization.
  organization_id uuid not null,
  id uuid not null default app.uuid_v7(),
  created_at timestamptz not null default clock_timestamp(),
  actor_kind app.audit_actor_kind not null,
  actor text not null,
  action text not null,
  subject_kind text not null,
  subject_id text,
  arguments jsonb not null default '{}',
  outcome app.audit_outcome not null,
  code text,
  result jsonb not null default '{}',
  request_id text,
  constraint audit_entries_pkey primary key (organization_id, id),
  constraint audit_entries_actor_check check (length(actor) between 1 and 255),
  constraint audit_entries_action_check check (action ~ '^[a-z]+(_[a-z]+)*\.[a-z]+(_[a-z]+)*$' and length(action) <= 100),
  constraint audit_entries_subject_kind_check check (subject_kind ~ '^[a-z]+(_[a-z]+)*$' and length(subject_kind) <= 100),
  constraint audit_entries_subject_id_check check (length(subject_id) between 1 and 255),
  constraint audit_entries_arguments_check
    check (jsonb_typeof(arguments) = 'object' and octet_length(arguments::text) <= 16384),
  constraint audit_entries_code_when_refused_check check ((outcome = 'refused') = (code is not null)),
  constraint audit_entries_result_check check (jsonb_typeof(result) = 'object' and octet_length(result::text) <= 16384),
  constraint audit_entries_request_id_check check (length(request_id) between 1 and 128)
);
create index audit_entries_created_at_idx on app.audit_entries (organization_id, created_at, id);
create index audit_entries_action_idx on app.audit_entries (organization_id, action, created_at, id);
create index audit_entries_actor_kind_idx on app.audit_entries (organization_id, actor_kind, created_at, id);
-- The administration reads across organizations.
create index audit_entries_all_created_at_idx on app.audit_entries (created_at, id);

create trigger audit_entries_keep before update or delete on app.audit_entries
  for each row execute function app.audit_entries_keep();

create trigger audit_entries_keep_all before truncate on app.audit_entries
  for each statement execute function app.audit_entries_keep();

alter table app.audit_entries enable row level security;
alter table app.audit_entries force row level security;
create policy owner_all on app.audit_entries to runner_owner using (true) with check (true);
create policy scoped_all on app.audit_entries to runner_scoped
  using (organization_id = (select app.current_organization()))
  with check (organization_id = (select app.current_organization()));
create policy tenant_read on app.audit_entries for select to runner_api
  using (organization_id = (select app.current_organization()));
create policy admin_read on app.audit_entries for select to runner_admin
  using ((select app.current_organization()) is null or organization_id = (select app.current_organization()));
create policy report_read on app.audit_entries for select to runner_report
  using (app.report_shows(organization_id,
      (select pg_has_role(session_user, 'runner_report', 'member')
        or exists (select from app.analysts a where a.login = session_user::text
          and a.login_oid = to_regrole(quote_ident(session_user))::oid::bigint and a.all_organizations)),
      array(select g.organization_id from app.analyst_grants g where g.login = session_user::text
        and g.login_oid = to_regrole(quote_ident(session_user))::oid::bigint))
    and organization_id = any (array(select o.id from app.organizations o)));
grant select, insert, delete on app.audit_entries to runner_scoped;
grant select on app.audit_entries to runner_api, runner_admin;
grant select (organization_id, id, created_at, actor_kind, actor, action, subject_kind, subject_id, outcome, code,
  request_id)
  on app.audit_entries to runner_report;
-- Not sampled: no plan is made by it, and EXPLAIN tells estimates of all tenants.
alter table app.audit_entries alter actor set statistics 0, alter action set statistics 0,
  alter subject_kind set statistics 0, alter subject_id set statistics 0, alter arguments set statistics 0,
  alter code set statistics 0, alter result set statistics 0, alter request_id set statistics 0;

comment on table app.audit_entries is
  'Decisions of people and administrators, in the order in which they were taken. Append-only; an organization''s entries go when it is purged.';
comment on column app.audit_entries.organization_id is
  'The organization that the decision is about; all zero for the whole platform.';
comment on column app.audit_entries.id is 'UUIDv7 of the entry.';
comment on column app.audit_entries.created_at is 'When the decision was carried out.';
comment on column app.audit_entries.actor_kind is
  'Who decided: a member of the organization (owner), a platform operator through the API (operator), an administrator (admin).';
comment on column app.audit_entries.actor is
  'The subject of an owner, how an operator was let in (token or open), the name of an administrator''s token. Never a secret.';
comment on column app.audit_entries.action is 'What was decided, as noun.verb, for example task.cancel.';
comment on column app.audit_entries.subject_kind is 'What kind of thing it was decided about, for example task.';
comment on column app.audit_entries.subject_id is 'Which one; null where it was never made.';
comment on column app.audit_entries.arguments is
  'What the decision was called with: long texts cut, values with the names of secrets left out.';
comment on column app.audit_entries.outcome is 'done, or refused by a transition that changed state all the same.';
comment on column app.audit_entries.code is 'The error code of a refusal.';
comment on column app.audit_entries.result is 'What the decision led to, in short.';
comment on column app.audit_entries.request_id is 'The id of the request, as in its response and in the logs.';

reset role;

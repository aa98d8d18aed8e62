-- Questions and notifications to people. Tasks that wait for a person name an item here.
set local role runner_owner;

create domain app.human_inbox_item_kind as text constraint human_inbox_item_kind_check
  check (value in ('question', 'notification', 'approval', 'reconciliation'));
create domain app.human_inbox_item_status as text constraint human_inbox_item_status_check
  check (value in ('open', 'responded', 'acknowledged', 'resolved', 'cancelled'));
create domain app.human_inbox_item_purpose as text constraint human_inbox_item_purpose_check
  check (value in ('repair', 'budget', 'needs_input', 'prerequisite', 'agent', 'schedule', 'failure', 'approval',
    'reconciliation'));

create table app.human_inbox_items (
  organization_id uuid not null,
  id uuid not null default app.uuid_v7(),
  task_id uuid,
  run_id uuid,
  action_id uuid,
  chat_id uuid,
  -- The schedule that a notification is about. No foreign key: the notification outlives it.
  schedule_id uuid,
  kind app.human_inbox_item_kind not null,
  status app.human_inbox_item_status not null default 'open',
  -- What an answer does: repair of a formal contract, a raised budget, or an agent's own question. Or what a notice tells.
  purpose app.human_inbox_item_purpose not null,
  blocking boolean not null default false,
  title text not null,
  body text not null default '',
  options jsonb not null default '[]',
  -- False: the answer is one of the options.
  allow_free_text boolean not null default true,
  response text,
  -- What a person wrote besides the option that was chosen.
  note text,
  responded_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint human_inbox_items_pkey primary key (organization_id, id),
  constraint human_inbox_items_task_id_fkey foreign key (organization_id, task_id)
    references app.tasks (organization_id, id) on delete cascade,
  constraint human_inbox_items_blocking_question_check check (not blocking or kind = 'question'),
  constraint human_inbox_items_responded_check check ((status = 'responded') = (response is not null)),
  constraint human_inbox_items_title_check check (length(title) between 1 and 500),
  constraint human_inbox_items_options_check check (jsonb_typeof(options) = 'array'),
  constraint human_inbox_items_note_when_responded_check check (note is null or status = 'responded'),
  constraint human_inbox_items_responded_at_when_handled_check
    check ((status in ('responded', 'acknowledged')) = (responded_at is not null)),
  constraint human_inbox_items_schedule_when_schedule_check check ((purpose = 'schedule') = (schedule_id is not null)),
  constraint human_inbox_items_action_when_decided_there_check
    check ((action_id is not null) = (kind in ('approval', 'reconciliation'))
      and (purpose in ('approval', 'reconciliation')) = (kind in ('approval', 'reconciliation'))
      and (action_id is null or purpose = kind))
);
-- One open repair or budget question a task; one notice that a prerequisite is over, one that the task failed.
create unique index human_inbox_items_open_purpose_idx on app.human_inbox_items (organization_id, task_id, purpose)
  where status = 'open' and purpose in ('repair', 'budget', 'prerequisite', 'failure');
create index human_inbox_items_task_id_idx on app.human_inbox_items (organization_id, task_id)
  where task_id is not null;
-- Of all organizations, for metrics.
create index human_inbox_items_open_idx on app.human_inbox_items (kind) where status = 'open';
create index human_inbox_items_status_idx on app.human_inbox_items (organization_id, status, created_at, id);
create unique index human_inbox_items_schedule_id_idx on app.human_inbox_items (organization_id, schedule_id)
  where status = 'open' and schedule_id is not null;
-- An action waits for one decision at a time.
create unique index human_inbox_items_action_id_idx on app.human_inbox_items (organization_id, action_id)
  where status = 'open' and action_id is not null;
create index human_inbox_items_created_at_idx on app.human_inbox_items (organization_id, created_at, id);
create index human_inbox_items_all_created_at_idx on app.human_inbox_items (created_at, id);

create trigger human_inbox_items_mark_run after insert on app.human_inbox_items
  for each row when (new.blocking and new.purpose = 'agent' and new.task_id is not null)
  execute function app.human_inbox_items_mark_run();

alter table app.human_inbox_items enable row level security;
alter table app.human_inbox_items force row level security;
create policy owner_all on app.human_inbox_items to runner_owner using (true) with check (true);
create policy scoped_all on app.human_inbox_items to runner_scoped
  using (organization_id = (select app.current_organization()))
  with check (organization_id = (select app.current_organization()));
create policy tenant_read on app.human_inbox_items for select to runner_api
  using (organization_id = (select app.current_organization()));
create policy global_read on app.human_inbox_items for select to runner_global using (true);
create policy admin_read on app.human_inbox_items for select to runner_admin
  using (((select app.current_organization()) is null or organization_id = (select app.current_organization()))
    and organization_id <> all ((select app.organizations_deleted())::uuid[]));
create policy report_read on app.human_inbox_items for select to runner_report
  using (app.report_shows(organization_id,
      (select pg_has_role(session_user, 'runner_report', 'member')
        or exists (select from app.analysts a where a.login = session_user::text
          and a.login_oid = to_regrole(quote_ident(session_user))::oid::bigint and a.all_organizations)),
      array(select g.organization_id from app.analyst_grants g where g.login = session_user::text
        and g.login_oid = to_regrole(quote_ident(session_user))::oid::bigint))
    and organization_id = any (array(select o.id from app.organizations o)));
grant select, insert, update, delete on app.human_inbox_items to runner_scoped;
grant select on app.human_inbox_items to runner_api;
grant select (organization_id, kind, status) on app.human_inbox_items to runner_global;
grant select (organization_id, id, task_id, run_id, action_id, chat_id, schedule_id, kind, status, purpose, blocking,
  title, body, options, allow_free_text, response, note, responded_at, created_at, updated_at)
  on app.human_inbox_items to runner_admin;
grant select (organization_id, id, task_id, run_id, chat_id, schedule_id, kind, status, purpose, blocking,
  responded_at, created_at, updated_at)
  on app.human_inbox_items to runner_report;
-- Not sampled: no plan is made by it, and EXPLAIN tells estimates of all tenants.
alter table app.human_inbox_items alter options set statistics 0;

comment on table app.human_inbox_items is 'What people are asked and told.';
comment on column app.human_inbox_items.organization_id is 'The organization it belongs to.';
comment on column app.human_inbox_items.id is 'Id of the item.';
comment on column app.human_inbox_items.task_id is 'The task it is about.';
comment on column app.human_inbox_items.run_id is 'The run that asks.';
comment on column app.human_inbox_items.action_id is 'The action it is about.';
comment on column app.human_inbox_items.chat_id is 'The chat it is about.';
comment on column app.human_inbox_items.schedule_id is 'The schedule it is about.';
comment on column app.human_inbox_items.kind is
  'Questions are responded to, notifications acknowledged, approvals and reconciliations decided at their action.';
comment on column app.human_inbox_items.status is 'cancelled: what it was about ended.';
comment on column app.human_inbox_items.purpose is 'What an answer does.';
comment on column app.human_inbox_items.blocking is 'The task waits for the answer.';
comment on column app.human_inbox_items.title is 'In short.';
comment on column app.human_inbox_items.body is 'The whole of it.';
comment on column app.human_inbox_items.options is 'Answers to choose from.';
comment on column app.human_inbox_items.allow_free_text is 'Whether an answer may be something else than an option.';
comment on column app.human_inbox_items.response is 'What was answered.';
comment on column app.human_inbox_items.note is 'What a person wrote besides the option.';
comment on column app.human_inbox_items.responded_at is 'When it was handled.';
comment on column app.human_inbox_items.created_at is 'When it was made.';
comment on column app.human_inbox_items.updated_at is 'When it was last changed.';

reset role;

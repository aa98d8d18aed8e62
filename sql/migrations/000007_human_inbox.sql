-- Questions and notifications to people. Tasks that wait for a person name an item here.
set local role runner_owner;

create table app.human_inbox_items (
  organization_id uuid not null,
  id uuid not null default app.uuid_v7(),
  kind text not null,
  status text not null default 'open',
  -- What an answer does: repair of a formal contract, a raised budget, or an agent's own question.
  purpose text not null,
  blocking boolean not null default false,
  title text not null,
  body text not null default '',
  options jsonb not null default '[]',
  task_id uuid,
  run_id uuid,
  action_id uuid,
  chat_id uuid,
  response text,
  responded_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint human_inbox_items_pkey primary key (organization_id, id),
  constraint human_inbox_items_task_id_fkey foreign key (organization_id, task_id)
    references app.tasks (organization_id, id) on delete cascade,
  constraint human_inbox_items_kind_check check (kind in ('question', 'notification', 'approval', 'reconciliation')),
  constraint human_inbox_items_status_check
    check (status in ('open', 'responded', 'acknowledged', 'resolved', 'cancelled')),
  constraint human_inbox_items_purpose_check
    check (purpose in ('repair', 'budget', 'needs_input', 'prerequisite', 'agent')),
  constraint human_inbox_items_blocking_question_check check (not blocking or kind = 'question'),
  constraint human_inbox_items_responded_check check ((status = 'responded') = (response is not null)),
  constraint human_inbox_items_title_check check (length(title) between 1 and 500),
  constraint human_inbox_items_options_check check (jsonb_typeof(options) = 'array')
);
-- One open repair or budget question a task; one notice that a prerequisite is over.
create unique index human_inbox_items_open_purpose_idx on app.human_inbox_items (organization_id, task_id, purpose)
  where status = 'open' and purpose in ('repair', 'budget', 'prerequisite');
create index human_inbox_items_task_id_idx on app.human_inbox_items (organization_id, task_id)
  where task_id is not null;
create index human_inbox_items_status_idx on app.human_inbox_items (organization_id, status, created_at, id);
alter table app.human_inbox_items enable row level security;
alter table app.human_inbox_items force row level security;
create policy owner_all on app.human_inbox_items to runner_owner using (true) with check (true);
create policy scoped_all on app.human_inbox_items to runner_scoped
  using (organization_id = (select app.current_organization()))
  with check (organization_id = (select app.current_organization()));
create policy tenant_read on app.human_inbox_items for select to runner_api
  using (organization_id = (select app.current_organization()));
grant select, insert, update, delete on app.human_inbox_items to runner_scoped;
grant select on app.human_inbox_items to runner_api;

reset role;

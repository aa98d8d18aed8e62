-- Files that were uploaded as inputs of tasks.
set local role runner_owner;

create table app.task_inputs (
  organization_id uuid not null,
  task_id uuid not null,
  path text not null,
  storage_key text not null,
  size bigint not null,
  sha256 text not null,
  media_type text not null,
  created_at timestamptz not null default now(),
  constraint task_inputs_pkey primary key (organization_id, task_id, path),
  constraint task_inputs_task_id_fkey foreign key (organization_id, task_id)
    references app.tasks (organization_id, id) on delete cascade,
  constraint task_inputs_size_check check (size >= 0),
  constraint task_inputs_sha256_check check (sha256 ~ '^[0-9a-f]{64}$'),
  constraint task_inputs_path_check check (length(path) between 1 and 1024)
);

alter table app.task_inputs enable row level security;
alter table app.task_inputs force row level security;
create policy owner_all on app.task_inputs to runner_owner using (true) with check (true);
create policy scoped_all on app.task_inputs to runner_scoped
  using (organization_id = (select app.current_organization()))
  with check (organization_id = (select app.current_organization()));
create policy tenant_read on app.task_inputs for select to runner_api
  using (organization_id = (select app.current_organization()));
create policy admin_read on app.task_inputs for select to runner_admin
  using (((select app.current_organization()) is null or organization_id = (select app.current_organization()))
    and organization_id <> all ((select app.organizations_deleted())::uuid[]));
grant select, insert, update, delete on app.task_inputs to runner_scoped;
grant select on app.task_inputs to runner_api;
grant select (organization_id, task_id, path, size, sha256, media_type, created_at)
  on app.task_inputs to runner_admin;

comment on table app.task_inputs is 'Files that were uploaded as inputs of a task.';
comment on column app.task_inputs.organization_id is 'The organization it belongs to.';
comment on column app.task_inputs.task_id is 'The task.';
comment on column app.task_inputs.path is 'Where a run finds it.';
comment on column app.task_inputs.storage_key is 'Where the bytes lie in the object storage; never shown.';
comment on column app.task_inputs.size is 'In bytes.';
comment on column app.task_inputs.sha256 is 'SHA-256 of the bytes, in hex.';
comment on column app.task_inputs.media_type is 'As its content says.';
comment on column app.task_inputs.created_at is 'When it was made.';

reset role;

-- Files of invocations of the gateway: what executions send with a write, and what a read brought.
set local role runner_owner;

create table app.action_invocation_files (
  organization_id uuid not null,
  run_id uuid not null,
  integration_id uuid not null,
  -- No foreign key to the invocation: files come before the call that names them.
  invocation_id text not null,
  id uuid not null,
  name text not null,
  content_type text not null,
  size_bytes bigint not null,
  sha256 text not null,
  -- Where whoever has the URL of an upload may write until it ends. What lies there counts for nothing until it was copied.
  upload_key text,
  upload_expires_at timestamptz,
  -- Where the bytes lie that were compared with the rest of the row: nobody else can write there.
  storage_key text,
  stored_at timestamptz,
  -- When a job looks whether it can go: a day after its execution, or after an upload that was not completed.
  remove_at timestamptz not null default now() + interval '1 day',
  created_at timestamptz not null default now(),
  constraint action_invocation_files_pkey primary key (organization_id, run_id, integration_id, invocation_id, id),
  constraint action_invocation_files_run_id_fkey foreign key (organization_id, run_id)
    references app.runs (organization_id, id) on delete cascade,
  constraint action_invocation_files_integration_id_fkey foreign key (organization_id, integration_id)
    references app.integrations (organization_id, id) on delete cascade,
  constraint action_invocation_files_invocation_id_check check (length(invocation_id) between 1 and 200),
  constraint action_invocation_files_name_check check (length(name) between 1 and 255),
  constraint action_invocation_files_content_type_check check (length(content_type) between 1 and 255),
  constraint action_invocation_files_size_bytes_check check (size_bytes between 0 and 1073741824),
  constraint action_invocation_files_sha256_check check (sha256 ~ '^[0-9a-f]{64}$'),
  constraint action_invocation_files_upload_check check ((upload_key is null) = (upload_expires_at is null)),
  constraint action_invocation_files_stored_check check ((storage_key is null) = (stored_at is null)),
  constraint action_invocation_files_begun_or_stored_check check (num_nonnulls(upload_key, storage_key) >= 1)
);
create index action_invocation_files_integration_id_idx on app.action_invocation_files (organization_id, integration_id);
-- What a job looks at, read as due_in_turns does.
create index action_invocation_files_remove_at_idx on app.action_invocation_files (remove_at);
create index action_invocation_files_remove_at_turns_idx on app.action_invocation_files (organization_id, remove_at);
-- What names an object.
create index action_invocation_files_storage_key_idx on app.action_invocation_files (organization_id, storage_key)
  where storage_key is not null;
create index action_invocation_files_upload_key_idx on app.action_invocation_files (organization_id, upload_key)
  where upload_key is not null;

alter table app.action_invocation_files enable row level security;
alter table app.action_invocation_files force row level security;
create policy owner_all on app.action_invocation_files to runner_owner using (true) with check (true);
create policy scoped_all on app.action_invocation_files to runner_scoped
  using (organization_id = (select app.current_organization()))
  with check (organization_id = (select app.current_organization()));
create policy global_read on app.action_invocation_files for select to runner_global using (true);
grant select, insert, update, delete on app.action_invocation_files to runner_scoped;
grant select (organization_id, run_id, remove_at) on app.action_invocation_files to runner_global;
-- Not sampled: EXPLAIN tells estimates of all tenants.
alter table app.action_invocation_files
  alter name set statistics 0,
  alter upload_key set statistics 0,
  alter storage_key set statistics 0;

comment on table app.action_invocation_files is
  'Files of calls of the gateway: begun, while an upload is awaited, or stored, when their bytes were compared with what was declared.';
comment on column app.action_invocation_files.organization_id is 'The organization it belongs to.';
comment on column app.action_invocation_files.run_id is 'The execution.';
comment on column app.action_invocation_files.integration_id is 'The integration that is called.';
comment on column app.action_invocation_files.invocation_id is 'The invocation, which alone may name it.';
comment on column app.action_invocation_files.id is 'Its id: of an upload chosen by the caller.';
comment on column app.action_invocation_files.name is 'Its name.';
comment on column app.action_invocation_files.content_type is 'Its media type.';
comment on column app.action_invocation_files.size_bytes is 'In bytes; until it is stored, as declared.';
comment on column app.action_invocation_files.sha256 is 'SHA-256 of the bytes, in hex; until it is stored, as declared.';
comment on column app.action_invocation_files.upload_key is
  'Where an upload by URL goes in the object storage; never shown. Null: there was none.';
comment on column app.action_invocation_files.upload_expires_at is 'When the last URL for it ends.';
comment on column app.action_invocation_files.storage_key is
  'Where the bytes lie in the object storage; never shown. Null: it is not stored yet.';
comment on column app.action_invocation_files.stored_at is 'When its bytes had been compared and were stored.';
comment on column app.action_invocation_files.remove_at is 'When a job looks whether it is no longer needed.';
comment on column app.action_invocation_files.created_at is 'When it was begun or stored.';

reset role;

-- Chats, their messages and attachments; run requests and runs that answer a message.
-- Trigram search, and organization_id in the same index. Whoever installed them before may have chosen the schema.
create extension if not exists pg_trgm;
create extension if not exists btree_gin;

set local role runner_owner;

create table app.chats (
  organization_id uuid not null,
  id uuid not null default app.uuid_v7(),
  title text not null,
  status text not null default 'open',
  summary text,
  harness_session_id text,
  settings jsonb not null default '{"pinnedTaskIds": []}',
  is_onboarding boolean not null default false,
  last_message_at timestamptz not null default now(),
  archived_at timestamptz,
  -- Its removal has begun: nobody sees it any more. The row goes last, so that a removal that was cut off is found again.
  removed_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint chats_pkey primary key (organization_id, id),
  constraint chats_organization_id_fkey foreign key (organization_id)
    references app.organizations (id) on delete cascade,
  constraint chats_title_check check (length(title) between 1 and 200),
  constraint chats_status_check check (status in ('open', 'archived')),
  constraint chats_archived_at_when_archived_check check ((status = 'archived') = (archived_at is not null)),
  constraint chats_archived_when_removed_check check (removed_at is null or status = 'archived'),
  constraint chats_settings_check check (jsonb_typeof(settings -> 'pinnedTaskIds') = 'array')
) with (fillfactor = 80);
create unique index chats_onboarding_idx on app.chats (organization_id) where is_onboarding;
create index chats_last_message_at_idx on app.chats (organization_id, last_message_at, id);
create index chats_status_idx on app.chats (organization_id, status, last_message_at, id);
-- What is to be removed some day; read by the clean-up over all organizations.
create index chats_archived_at_idx on app.chats (archived_at) where status = 'archived';
alter table app.chats enable row level security;
alter table app.chats force row level security;
create policy owner_all on app.chats to runner_owner using (true) with check (true);
create policy scoped_all on app.chats to runner_scoped
  using (organization_id = (select app.current_organization()))
  with check (organization_id = (select app.current_organization()));
create policy global_read on app.chats for select to runner_global using (true);
create policy tenant_read on app.chats for select to runner_api
  using (organization_id = (select app.current_organization()) and removed_at is null);
grant select, insert, update, delete on app.chats to runner_scoped;
grant select on app.chats to runner_global, runner_api;

create table app.messages (
  organization_id uuid not null,
  id uuid not null default app.uuid_v7(),
  chat_id uuid not null,
  reply_to_message_id uuid,
  role text not null,
  status text not null,
  revision integer not null default 1,
  author jsonb,
  parts jsonb not null,
  error jsonb,
  -- Digest of the write that made this revision: sent again it is told from another one.
  write_hash text,
  -- The visible text in lower case, from the moment when it is final: revisions in between would churn its index.
  search_text text,
  completed_at timestamptz,
  -- Rises strictly within a chat: set under the chat's lock.
  created_at timestamptz not null,
  updated_at timestamptz not null,
  constraint messages_pkey primary key (organization_id, id),
  constraint messages_chat_id_fkey foreign key (organization_id, chat_id)
    references app.chats (organization_id, id) on delete cascade,
  constraint messages_reply_to_message_id_fkey foreign key (organization_id, reply_to_message_id)
    references app.messages (organization_id, id) on delete cascade,
  constraint messages_role_check check (role in ('user', 'assistant')),
  constraint messages_status_check check (status in ('pending', 'complete', 'cancelling', 'cancelled', 'failed')),
  constraint messages_complete_when_user_check check (role = 'assistant' or status = 'complete'),
  constraint messages_reply_when_assistant_check check ((role = 'assistant') = (reply_to_message_id is not null)),
  constraint messages_completed_at_when_final_check
    check ((status in ('complete', 'cancelled', 'failed')) = (completed_at is not null)),
  constraint messages_error_when_failed_check check ((status = 'failed') = (error is not null)),
  constraint messages_search_text_when_final_check check ((completed_at is null) = (search_text is null)),
  constraint messages_revision_check check (revision >= 1),
  constraint messages_parts_check check (jsonb_typeof(parts) = 'array')
) with (fillfactor = 80);
create index messages_created_at_idx on app.messages (organization_id, chat_id, created_at, id);
-- An answer under way; two at once would answer past each other.
create unique index messages_active_idx on app.messages (organization_id, chat_id)
  where role = 'assistant' and status in ('pending', 'cancelling');
create unique index messages_reply_to_message_id_idx on app.messages (organization_id, reply_to_message_id)
  where reply_to_message_id is not null;

-- Streams show revisions by their number: each change has a higher one, and what is final stays as it is.
create function app.messages_keep_revision() returns trigger
  language plpgsql set search_path = pg_catalog, pg_temp
  as $$
begin
  if new is distinct from old and (new.revision <= old.revision or old.completed_at is not null) then
    raise exception 'message % is final, or its revision does not rise', old.id;
  end if;
  return new;
end
$$;
revoke all on function app.messages_keep_revision() from public;
create trigger messages_keep_revision before update on app.messages
  for each row execute function app.messages_keep_revision();

alter table app.messages enable row level security;
alter table app.messages force row level security;
create policy owner_all on app.messages to runner_owner using (true) with check (true);
create policy scoped_all on app.messages to runner_scoped
  using (organization_id = (select app.current_organization()))
  with check (organization_id = (select app.current_organization()));
create policy global_read on app.messages for select to runner_global using (true);
create policy tenant_read on app.messages for select to runner_api
  using (organization_id = (select app.current_organization()));
grant select, insert, update, delete on app.messages to runner_scoped;
grant select on app.messages to runner_global, runner_api;

create table app.chat_attachments (
  organization_id uuid not null,
  chat_id uuid not null,
  -- The client's; unique in its chat alone.
  id uuid not null,
  file_name text not null,
  media_type text not null,
  size_bytes bigint not null,
  sha256 text not null,
  storage_key text not null,
  created_at timestamptz not null default now(),
  constraint chat_attachments_pkey primary key (organization_id, chat_id, id),
  constraint chat_attachments_chat_id_fkey foreign key (organization_id, chat_id)
    references app.chats (organization_id, id) on delete cascade,
  constraint chat_attachments_file_name_check check (length(file_name) between 1 and 255),
  constraint chat_attachments_size_bytes_check check (size_bytes between 0 and 52428800),
  constraint chat_attachments_sha256_check check (sha256 ~ '^[0-9a-f]{64}$')
);
alter table app.chat_attachments enable row level security;
alter table app.chat_attachments force row level security;
create policy owner_all on app.chat_attachments to runner_owner using (true) with check (true);
create policy scoped_all on app.chat_attachments to runner_scoped
  using (organization_id = (select app.current_organization()))
  with check (organization_id = (select app.current_organization()));
create policy tenant_read on app.chat_attachments for select to runner_api
  using (organization_id = (select app.current_organization()));
grant select, insert, update, delete on app.chat_attachments to runner_scoped;
grant select on app.chat_attachments to runner_api;

-- A chat turn is the request that answers one message.
alter table app.run_requests
  add column chat_id uuid,
  add column message_id uuid,
  add constraint run_requests_chat_when_chat_check
    check ((kind = 'chat') = (message_id is not null) and (chat_id is null) = (message_id is null)),
  add constraint run_requests_message_id_fkey foreign key (organization_id, message_id)
    references app.messages (organization_id, id) on delete cascade;
create unique index run_requests_message_id_idx on app.run_requests (organization_id, message_id)
  where message_id is not null;
-- Turns that nobody has started yet; read by the sweep over all organizations.
create index run_requests_chat_waiting_idx on app.run_requests (created_at)
  where kind = 'chat' and state in ('published', 'leased');
grant select (chat_id, message_id) on app.run_requests to runner_api, runner_jobs;

alter table app.runs
  add column chat_id uuid,
  add column message_id uuid,
  add constraint runs_chat_when_chat_check
    check ((kind = 'chat') = (message_id is not null) and (chat_id is null) = (message_id is null));
grant select (chat_id, message_id) on app.runs to runner_api, runner_jobs;

reset role;

-- Search. The operator classes are named by the schema that holds them here.
do $$
declare
  v_trgm text := (select n.nspname from pg_extension e join pg_namespace n on n.oid = e.extnamespace
                    where e.extname = 'pg_trgm');
  v_gin text := (select n.nspname from pg_extension e join pg_namespace n on n.oid = e.extnamespace
                   where e.extname = 'btree_gin');
begin
  execute format('create index messages_search_idx on app.messages
    using gin (organization_id %2$I.uuid_ops, search_text %1$I.gin_trgm_ops) where search_text is not null',
    v_trgm, v_gin);
  execute format('create index chats_search_idx on app.chats
    using gin (organization_id %2$I.uuid_ops, lower(title) %1$I.gin_trgm_ops)', v_trgm, v_gin);
end
$$;

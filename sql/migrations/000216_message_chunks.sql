-- The text of long messages beyond their beginning, which is searched in the message itself: cut and indexed by a job after the
-- commit, a few pieces in a transaction.
set local role runner_owner;

create table app.message_chunks (
  organization_id uuid not null,
  message_id uuid not null,
  number integer not null,
  chat_id uuid not null,
  -- Folded as messages.search_text. Null: the piece that the job cuts next; the message is done when there is none.
  search_text text,
  -- When the job cuts it.
  due_at timestamptz not null default clock_timestamp(),
  constraint message_chunks_pkey primary key (organization_id, message_id, number),
  constraint message_chunks_message_id_fkey foreign key (organization_id, message_id)
    references app.messages (organization_id, id) on delete cascade,
  constraint message_chunks_number_check check (number >= 1)
);
-- Also for the removal of a chat.
create index message_chunks_chat_id_idx on app.message_chunks (organization_id, chat_id);
-- What waits for the job (app.due_in_turns); at most one piece of a message.
create index message_chunks_due_at_idx on app.message_chunks (due_at) where search_text is null;
create index message_chunks_due_at_turns_idx on app.message_chunks (organization_id, due_at) where search_text is null;
create unique index message_chunks_waiting_idx on app.message_chunks (organization_id, message_id)
  where search_text is null;

alter table app.message_chunks enable row level security;
alter table app.message_chunks force row level security;
create policy owner_all on app.message_chunks to runner_owner using (true) with check (true);
create policy scoped_all on app.message_chunks to runner_scoped
  using (organization_id = (select app.current_organization()))
  with check (organization_id = (select app.current_organization()));
create policy global_read on app.message_chunks for select to runner_global using (true);
grant select, insert, update, delete on app.message_chunks to runner_scoped;
grant select on app.message_chunks to runner_global;

comment on table app.message_chunks is 'The searched text of long messages, beyond their beginning.';
comment on column app.message_chunks.organization_id is 'The organization it belongs to.';
comment on column app.message_chunks.message_id is 'The message.';
comment on column app.message_chunks.number is 'From 1, in the order of the text.';
comment on column app.message_chunks.chat_id is 'Its chat.';
comment on column app.message_chunks.search_text is 'The piece, folded for search; null until the job has cut it.';
comment on column app.message_chunks.due_at is 'When the job cuts it: at once, or a while after it failed to.';

reset role;

-- Search, as in 000206_chats.sql.
do $$
declare
  v_trgm text := (select n.nspname from pg_extension e join pg_namespace n on n.oid = e.extnamespace
                    where e.extname = 'pg_trgm');
  v_gin text := (select n.nspname from pg_extension e join pg_namespace n on n.oid = e.extnamespace
                   where e.extname = 'btree_gin');
begin
  execute format('create index message_chunks_search_idx on app.message_chunks
    using gin (organization_id %2$I.uuid_ops, search_text %1$I.gin_trgm_ops)
    with (gin_pending_list_limit = 1024) where search_text is not null', v_trgm, v_gin);
  execute format('create index message_chunks_search_grams_idx on app.message_chunks
    using gin (organization_id %I.uuid_ops, (app.search_grams(search_text) collate "C"))
    with (gin_pending_list_limit = 1024) where search_text is not null', v_gin);
end
$$;
alter index app.message_chunks_search_grams_idx alter column 2 set statistics 0;

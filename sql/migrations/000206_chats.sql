-- Chats, their messages and attachments, and how their texts are searched.
set local role runner_owner;

-- Search finds text however it was typed: composed or not, in capitals or small letters, wide or narrow.
-- What is searched is stored as it was folded, and the indexes are over what is stored: another version of Postgres or of its
-- locale may fold the next text differently, and breaks none of them. The same fold is made of what is looked for.
-- The database's own rules say which letters are small; where they know ASCII alone (locale C), the letters of the Latin,
-- Greek, Cyrillic and Armenian scripts are listed here. A sigma is one letter wherever it stands, and so is a sharp s.
create function app.search_fold(p_text text) returns text
  language plpgsql immutable strict parallel safe set search_path = pg_catalog, pg_temp
  as $$
declare
  v_text text;
begin
  if octet_length(p_text) = length(p_text) then
    return lower(p_text collate "C");
  end if;
  -- ASCII first: in a Turkish locale the small letter of I is another one.
  v_text := lower(translate(normalize(p_text, nfkc), 'İ', 'i') collate "C");
  if lower('ÄΩЖ') = 'äωж' then
    v_text := lower(v_text);
  else
    v_text := translate(v_text,
    'ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÐÑÒÓÔÕÖØÙÚÛÜÝÞĀĂĄĆĈĊČĎĐĒĔĖĘĚĜĞĠĢĤĦĨĪĬĮĴĶĹĻĽŁŃŅŇŊŌŎŐŒŔŖŘŚŜŞŠŢŤŦŨŪŬŮŰŲŴŶŸŹŻŽƁƂƄƆƇƉ'
    ||     'ƊƋƎƏƐƑƓƔƖƗƘƜƝƟƠƢƤƦƧƩƬƮƯƱƲƳƵƷƸƼǍǏǑǓǕǗǙǛǞǠǢǤǦǨǪǬǮǴǶǷǸǺǼǾȀȂȄȆȈȊȌȎȐȒȔȖȘȚȜȞȠȢȤȦȨȪȬȮȰȲȺȻȽȾɁɃɄɅɆɈɊɌɎͰͲͶ'
    ||     'ͿΆΈΉΊΌΎΏΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΣΤΥΦΧΨΩΪΫϏϘϚϜϞϠϢϤϦϨϪϬϮϷϺϽϾϿЀЁЂЃЄЅІЇЈЉЊЋЌЍЎЏАБВГДЕЖЗИЙКЛМНОПРСТУФХЦЧШЩЪЫ'
    ||     'ЬЭЮЯѠѢѤѦѨѪѬѮѰѲѴѶѸѺѼѾҀҊҌҎҐҒҔҖҘҚҜҞҠҢҤҦҨҪҬҮҰҲҴҶҸҺҼҾӀӁӃӅӇӉӋӍӐӒӔӖӘӚӜӞӠӢӤӦӨӪӬӮӰӲӴӶӸӺӼӾԀԂԄԆԈԊԌԎԐԒԔԖԘԚԜԞ'
    ||     'ԠԢԤԦԨԪԬԮԱԲԳԴԵԶԷԸԹԺԻԼԽԾԿՀՁՂՃՄՅՆՇՈՉՊՋՌՍՎՏՐՑՒՓՔՕՖḀḂḄḆḈḊḌḎḐḒḔḖḘḚḜḞḠḢḤḦḨḪḬḮḰḲḴḶḸḺḼḾṀṂṄṆṈṊṌṎṐṒṔṖṘṚṜṞṠṢ'
    ||     'ṤṦṨṪṬṮṰṲṴṶṸṺṼṾẀẂẄẆẈẊẌẎẐẒẔẠẢẤẦẨẪẬẮẰẲẴẶẸẺẼẾỀỂỄỆỈỊỌỎỐỒỔỖỘỚỜỞỠỢỤỦỨỪỬỮỰỲỴỶỸỺỼỾἈἉἊἋἌἍἎἏἘἙἚἛἜἝἨἩἪἫἬἭἮἯἸ'
    ||     'ἹἺἻἼἽἾἿὈὉὊὋὌὍὙὛὝὟὨὩὪὫὬὭὮὯᾈᾉᾊᾋᾌᾍᾎᾏᾘᾙᾚᾛᾜᾝᾞᾟᾨᾩᾪᾫᾬᾭᾮᾯᾸᾹᾺᾼῈῊῌῘῙῚῨῩῪῬῸῺῼ',
    'àáâãäåæçèéêëìíîïðñòóôõöøùúûüýþāăąćĉċčďđēĕėęěĝğġģĥħĩīĭįĵķĺļľłńņňŋōŏőœŕŗřśŝşšţťŧũūŭůűųŵŷÿźżžɓƃƅɔƈɖ'
    ||     'ɗƌǝəɛƒɠɣɩɨƙɯɲɵơƣƥʀƨʃƭʈưʊʋƴƶʒƹƽǎǐǒǔǖǘǚǜǟǡǣǥǧǩǫǭǯǵƕƿǹǻǽǿȁȃȅȇȉȋȍȏȑȓȕȗșțȝȟƞȣȥȧȩȫȭȯȱȳⱥȼƚⱦɂƀʉʌɇɉɋɍɏͱͳͷ'
    ||     'ϳάέήίόύώαβγδεζηθικλμνξοπρστυφχψωϊϋϗϙϛϝϟϡϣϥϧϩϫϭϯϸϻͻͼͽѐёђѓєѕіїјљњћќѝўџабвгдежзийклмнопрстуфхцчшщъы'
    ||     'ьэюяѡѣѥѧѩѫѭѯѱѳѵѷѹѻѽѿҁҋҍҏґғҕҗҙқҝҟҡңҥҧҩҫҭүұҳҵҷҹһҽҿӏӂӄӆӈӊӌӎӑӓӕӗәӛӝӟӡӣӥӧөӫӭӯӱӳӵӷӹӻӽӿԁԃԅԇԉԋԍԏԑԓԕԗԙԛԝԟ'
    ||     'ԡԣԥԧԩԫԭԯաբգդեզէըթժիլխծկհձղճմյնշոչպջռսվտրցւփքօֆḁḃḅḇḉḋḍḏḑḓḕḗḙḛḝḟḡḣḥḧḩḫḭḯḱḳḵḷḹḻḽḿṁṃṅṇṉṋṍṏṑṓṕṗṙṛṝṟṡṣ'
    ||     'ṥṧṩṫṭṯṱṳṵṷṹṻṽṿẁẃẅẇẉẋẍẏẑẓẕạảấầẩẫậắằẳẵặẹẻẽếềểễệỉịọỏốồổỗộớờởỡợụủứừửữựỳỵỷỹỻỽỿἀἁἂἃἄἅἆἇἐἑἒἓἔἕἠἡἢἣἤἥἦἧἰ'
    ||     'ἱἲἳἴἵἶἷὀὁὂὃὄὅὑὓὕὗὠὡὢὣὤὥὦὧᾀᾁᾂᾃᾄᾅᾆᾇᾐᾑᾒᾓᾔᾕᾖᾗᾠᾡᾢᾣᾤᾥᾦᾧᾰᾱὰᾳὲὴῃῐῑὶῠῡὺῥὸὼῳ');
  end if;
  -- Small letters may compose with a mark that capitals do not compose with.
  return normalize(replace(replace(translate(v_text, 'ς', 'σ'), 'ß', 'ss'), 'ẞ', 'ss'), nfkc);
end
$$;
revoke all on function app.search_fold(text) from public;
grant execute on function app.search_fold(text) to runner_scoped, runner_global;

-- Search for one or two characters, for signs, and in other scripts: trigrams are made of letters and digits, three in a
-- row, and with some locales of Latin ones alone.
-- Characters and pairs of neighbours of a text, each once. Immutable, as an index expression has to be: kept here, beside it.
-- Its cost keeps the planner from calling it for every row. Compared by bytes, which takes a third of what the rules of a
-- language take: a message is indexed while its chat is locked.
create function app.search_grams(p_text text) returns text[]
  language plpgsql immutable parallel safe cost 10000 set search_path = pg_catalog, pg_temp
  as $$
declare
  v_characters constant text[] := string_to_array(p_text, null);
begin
  return array(
    select distinct g.gram collate "C"
    from (
      select unnest(v_characters) as gram
      union all
      select p.one || p.next from unnest(v_characters, v_characters[2:]) p(one, next) where p.next is not null
    ) g);
end
$$;
revoke all on function app.search_grams(text) from public;
grant execute on function app.search_grams(text) to runner_scoped, runner_global;

create domain app.chat_status as text constraint chat_status_check check (value in ('open', 'archived'));

create table app.chats (
  organization_id uuid not null,
  id uuid not null default app.uuid_v7(),
  status app.chat_status not null default 'open',
  is_onboarding boolean not null default false,
  title text not null,
  search_title text not null generated always as (app.search_fold(title)) stored,
  summary text,
  harness_session_id text,
  settings jsonb not null default '{"pinnedTaskIds": []}',
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
  constraint chats_archived_at_when_archived_check check ((status = 'archived') = (archived_at is not null)),
  constraint chats_archived_when_removed_check check (removed_at is null or status = 'archived'),
  constraint chats_settings_check check (jsonb_typeof(settings -> 'pinnedTaskIds') = 'array')
) with (fillfactor = 80);
create unique index chats_onboarding_idx on app.chats (organization_id) where is_onboarding;
create index chats_last_message_at_idx on app.chats (organization_id, last_message_at, id);
create index chats_status_idx on app.chats (organization_id, status, last_message_at, id);
-- What is to be removed some day; read by the clean-up (app.due_in_turns).
create index chats_archived_at_idx on app.chats (archived_at) where status = 'archived';
create index chats_archived_at_turns_idx on app.chats (organization_id, archived_at) where status = 'archived';

create trigger chats_wake after update of status on app.chats
  for each row when (new.status <> old.status) execute function app.chats_wake();

alter table app.chats enable row level security;
alter table app.chats force row level security;
create policy owner_all on app.chats to runner_owner using (true) with check (true);
create policy scoped_all on app.chats to runner_scoped
  using (organization_id = (select app.current_organization()))
  with check (organization_id = (select app.current_organization()));
create policy global_read on app.chats for select to runner_global using (true);
create policy tenant_read on app.chats for select to runner_api
  using (organization_id = (select app.current_organization()) and removed_at is null);
create policy admin_read on app.chats for select to runner_admin
  using (((select app.current_organization()) is null or organization_id = (select app.current_organization()))
    and organization_id <> all ((select app.organizations_deleted())::uuid[])
    and removed_at is null);
create policy report_read on app.chats for select to runner_report
  using (app.report_shows(organization_id,
      (select pg_has_role(session_user, 'runner_report', 'member')
        or exists (select from app.analysts a where a.login = session_user::text
          and a.login_oid = to_regrole(quote_ident(session_user))::oid::bigint and a.all_organizations)),
      array(select g.organization_id from app.analyst_grants g where g.login = session_user::text
        and g.login_oid = to_regrole(quote_ident(session_user))::oid::bigint))
    and organization_id = any (array(select o.id from app.organizations o)));
grant select, insert, update, delete on app.chats to runner_scoped;
grant select on app.chats to runner_global, runner_api;
grant select (organization_id, id, status, is_onboarding, title, summary, settings, last_message_at, archived_at,
  created_at, updated_at)
  on app.chats to runner_admin;
grant select (organization_id, id, status, is_onboarding, last_message_at, archived_at, removed_at, created_at,
  updated_at)
  on app.chats to runner_report;
-- Not sampled: no plan is made by it, and EXPLAIN tells estimates of all tenants.
alter table app.chats alter settings set statistics 0;

comment on table app.chats is 'Conversations of people with the chat profile.';
comment on column app.chats.organization_id is 'The organization it belongs to.';
comment on column app.chats.id is 'Id of the chat.';
comment on column app.chats.status is 'archived ones are removed after 30 days.';
comment on column app.chats.is_onboarding is 'The chat of the onboarding, which nobody changes.';
comment on column app.chats.title is 'For people.';
comment on column app.chats.search_title is 'The title, folded for search.';
comment on column app.chats.summary is 'What it is about, as the agent sums it up.';
comment on column app.chats.harness_session_id is 'The session of the runtime that replies; never shown.';
comment on column app.chats.settings is 'Pinned tasks.';
comment on column app.chats.last_message_at is 'When its last message came; at first its creation.';
comment on column app.chats.archived_at is 'When it was archived.';
comment on column app.chats.removed_at is 'Its removal has begun: nobody sees it.';
comment on column app.chats.created_at is 'When it was made.';
comment on column app.chats.updated_at is 'When it was last changed.';

create domain app.message_role as text constraint message_role_check check (value in ('user', 'assistant'));
create domain app.message_status as text constraint message_status_check
  check (value in ('pending', 'complete', 'cancelling', 'cancelled', 'failed'));

create table app.messages (
  organization_id uuid not null,
  id uuid not null default app.uuid_v7(),
  chat_id uuid not null,
  reply_to_message_id uuid,
  role app.message_role not null,
  status app.message_status not null,
  revision integer not null default 1,
  author jsonb,
  parts jsonb not null,
  error jsonb,
  -- Digest of the write that made this revision: sent again it is told from another one.
  write_hash text,
  -- The visible text, folded, from the moment when it is final: revisions in between would churn its index.
  search_text text,
  completed_at timestamptz,
  -- Rises strictly within a chat: set under the chat's lock.
  created_at timestamptz not null,
  updated_at timestamptz not null,
  constraint messages_pkey primary key (organization_id, id),
  constraint messages_chat_id_fkey foreign key (organization_id, chat_id)
    references app.chats (organization_id, id) on delete cascade,
  constraint messages_reply_to_message_id_fkey foreign key (organization_id, reply_to_message_id)
    references app.messages (organization_id, id) on delete cascade
) with (fillfactor = 80);

-- The rules of one row: see 000201_schemas.sql.
create function app.messages_check(r app.messages) returns boolean
  language plpgsql immutable
as $$
declare
  v_broken constant text := case
    when not (r.role = 'assistant' or r.status = 'complete') then 'messages_complete_when_user_check'
    when not ((r.status in ('complete', 'cancelled', 'failed')) = (r.completed_at is not null))
      then 'messages_completed_at_when_final_check'
    when not ((r.status = 'failed') = (r.error is not null)) then 'messages_error_when_failed_check'
    when not jsonb_typeof(r.parts) = 'array' then 'messages_parts_check'
    when not ((r.role = 'assistant') = (r.reply_to_message_id is not null)) then 'messages_reply_when_assistant_check'
    when not r.revision >= 1 then 'messages_revision_check'
    when not ((r.completed_at is null) = (r.search_text is null)) then 'messages_search_text_when_final_check'
  end;
begin
  if v_broken is not null then
    perform app.rule_refuse('messages', v_broken);
  end if;
  return true;
end
$$;
revoke all on function app.messages_check(app.messages) from public;
grant execute on function app.messages_check(app.messages) to runner_scoped, runner_global;
alter table app.messages add constraint messages_row_check check (app.messages_check(messages));

create index messages_created_at_idx on app.messages (organization_id, chat_id, created_at, id);
-- One pending reply a chat: two at once would not see each other.
create unique index messages_active_idx on app.messages (organization_id, chat_id)
  where role = 'assistant' and status in ('pending', 'cancelling');
create unique index messages_reply_to_message_id_idx on app.messages (organization_id, reply_to_message_id)
  where reply_to_message_id is not null;

create trigger messages_keep_revision before update on app.messages
  for each row execute function app.messages_keep_revision();
create trigger messages_wake after insert or update on app.messages
  for each row execute function app.messages_wake();

alter table app.messages enable row level security;
alter table app.messages force row level security;
create policy owner_all on app.messages to runner_owner using (true) with check (true);
create policy scoped_all on app.messages to runner_scoped
  using (organization_id = (select app.current_organization()))
  with check (organization_id = (select app.current_organization()));
create policy global_read on app.messages for select to runner_global using (true);
create policy tenant_read on app.messages for select to runner_api
  using (organization_id = (select app.current_organization()));
create policy admin_read on app.messages for select to runner_admin
  using (((select app.current_organization()) is null or organization_id = (select app.current_organization()))
    and organization_id <> all ((select app.organizations_deleted())::uuid[])
    and exists (select 1 from app.chats c where c.organization_id = messages.organization_id and c.id = messages.chat_id));
create policy report_read on app.messages for select to runner_report
  using (app.report_shows(organization_id,
      (select pg_has_role(session_user, 'runner_report', 'member')
        or exists (select from app.analysts a where a.login = session_user::text
          and a.login_oid = to_regrole(quote_ident(session_user))::oid::bigint and a.all_organizations)),
      array(select g.organization_id from app.analyst_grants g where g.login = session_user::text
        and g.login_oid = to_regrole(quote_ident(session_user))::oid::bigint))
    and organization_id = any (array(select o.id from app.organizations o)));
grant select, insert, update, delete on app.messages to runner_scoped;
grant select on app.messages to runner_global, runner_api;
grant select (organization_id, id, chat_id, reply_to_message_id, role, status, revision, author, parts, error,
  completed_at, created_at, updated_at)
  on app.messages to runner_admin;
grant select (organization_id, id, chat_id, reply_to_message_id, role, status, revision, error, completed_at,
  created_at, updated_at)
  on app.messages to runner_report;
-- Not sampled: no plan is made by it, and EXPLAIN tells estimates of all tenants.
alter table app.messages alter author set statistics 0, alter parts set statistics 0, alter error set statistics 0;

comment on table app.messages is 'What people and agents say in chats.';
comment on column app.messages.organization_id is 'The organization it belongs to.';
comment on column app.messages.id is 'Id of the message.';
comment on column app.messages.chat_id is 'Its chat.';
comment on column app.messages.reply_to_message_id is 'The message that a reply is to.';
comment on column app.messages.role is 'user: a person. assistant: an agent.';
comment on column app.messages.status is
  'A reply is written while it is pending; complete, cancelled and failed are final.';
comment on column app.messages.revision is 'Rises with every change.';
comment on column app.messages.author is 'Who wrote it.';
comment on column app.messages.parts is 'Texts, questions, answers, notes, attachments.';
comment on column app.messages.error is 'Why the reply failed.';
comment on column app.messages.write_hash is 'Digest of the write that made this revision.';
comment on column app.messages.search_text is
  'The visible text, folded for search, from the moment when it is final; null before.';
comment on column app.messages.completed_at is 'When it became final.';
comment on column app.messages.created_at is 'When it was made.';
comment on column app.messages.updated_at is 'When it was last changed.';

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
create policy admin_read on app.chat_attachments for select to runner_admin
  using (((select app.current_organization()) is null or organization_id = (select app.current_organization()))
    and organization_id <> all ((select app.organizations_deleted())::uuid[])
    and exists (select 1 from app.chats c where c.organization_id = chat_attachments.organization_id
      and c.id = chat_attachments.chat_id));
create policy report_read on app.chat_attachments for select to runner_report
  using (app.report_shows(organization_id,
      (select pg_has_role(session_user, 'runner_report', 'member')
        or exists (select from app.analysts a where a.login = session_user::text
          and a.login_oid = to_regrole(quote_ident(session_user))::oid::bigint and a.all_organizations)),
      array(select g.organization_id from app.analyst_grants g where g.login = session_user::text
        and g.login_oid = to_regrole(quote_ident(session_user))::oid::bigint))
    and organization_id = any (array(select o.id from app.organizations o)));
grant select, insert, update, delete on app.chat_attachments to runner_scoped;
grant select on app.chat_attachments to runner_api;
grant select (organization_id, chat_id, id, file_name, media_type, size_bytes, sha256, created_at)
  on app.chat_attachments to runner_admin;
grant select (organization_id, chat_id, size_bytes)
  on app.chat_attachments to runner_report;
-- Not sampled: no plan is made by it, and EXPLAIN tells estimates of all tenants.
alter table app.chat_attachments alter size_bytes set statistics 0;

comment on table app.chat_attachments is 'Files that people attached to a chat.';
comment on column app.chat_attachments.organization_id is 'The organization it belongs to.';
comment on column app.chat_attachments.chat_id is 'The chat.';
comment on column app.chat_attachments.id is 'Chosen by the client; unique in the chat.';
comment on column app.chat_attachments.file_name is 'As the person called it.';
comment on column app.chat_attachments.media_type is 'As its content says.';
comment on column app.chat_attachments.size_bytes is 'In bytes.';
comment on column app.chat_attachments.sha256 is 'SHA-256 of the bytes, in hex.';
comment on column app.chat_attachments.storage_key is 'Where the bytes lie in the object storage; never shown.';
comment on column app.chat_attachments.created_at is 'When it was made.';

reset role;

-- Search. The operator classes are named by the schema that holds them here. Whoever fills a list of entries that wait files
-- all of them, with its chat locked: 4 MiB took 300 ms, a quarter takes 20, and on average a message no longer.
-- Pairs are compared by bytes, so that no locale orders them. How common they are the search asks of the index itself:
-- ANALYZE would sample the pairs of 30,000 messages, 7 s for texts of 350 characters, minutes for long ones.
do $$
declare
  v_trgm text := (select n.nspname from pg_extension e join pg_namespace n on n.oid = e.extnamespace
                    where e.extname = 'pg_trgm');
  v_gin text := (select n.nspname from pg_extension e join pg_namespace n on n.oid = e.extnamespace
                   where e.extname = 'btree_gin');
begin
  execute format('create index chats_search_idx on app.chats
    using gin (organization_id %2$I.uuid_ops, search_title %1$I.gin_trgm_ops)', v_trgm, v_gin);
  execute format('create index messages_search_idx on app.messages
    using gin (organization_id %2$I.uuid_ops, search_text %1$I.gin_trgm_ops)
    with (gin_pending_list_limit = 1024) where search_text is not null', v_trgm, v_gin);
  execute format('create index messages_search_grams_idx on app.messages
    using gin (organization_id %I.uuid_ops, (app.search_grams(search_text) collate "C"))
    with (gin_pending_list_limit = 1024) where search_text is not null', v_gin);
end
$$;
alter index app.messages_search_grams_idx alter column 2 set statistics 0;

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
alter function app.search_fold(text) owner to runner_owner;
revoke all on function app.search_fold(text) from public;
grant execute on function app.search_fold(text) to runner_scoped, runner_global;

drop index app.chats_search_idx;
drop index app.messages_search_grams_idx;

set local role runner_owner;
alter table app.chats add column search_title text not null generated always as (app.search_fold(title)) stored;
comment on column app.chats.search_title is 'The title, folded for search.';
comment on column app.messages.search_text is 'The visible text, folded for search, from the moment when it is final; null before.';
-- The text of a message is not its revision.
alter table app.messages disable trigger messages_keep_revision;
update app.messages set search_text = app.search_fold(search_text)
  where octet_length(search_text) <> length(search_text) and search_text <> app.search_fold(search_text);
alter table app.messages enable trigger messages_keep_revision;
reset role;

-- Pairs are compared by bytes: no locale orders them.
do $$
declare
  v_trgm text := (select n.nspname from pg_extension e join pg_namespace n on n.oid = e.extnamespace
                    where e.extname = 'pg_trgm');
  v_gin text := (select n.nspname from pg_extension e join pg_namespace n on n.oid = e.extnamespace
                   where e.extname = 'btree_gin');
begin
  execute format('create index chats_search_idx on app.chats
    using gin (organization_id %2$I.uuid_ops, search_title %1$I.gin_trgm_ops)', v_trgm, v_gin);
  execute format('create index messages_search_grams_idx on app.messages
    using gin (organization_id %I.uuid_ops, (app.search_grams(search_text) collate "C"))
    with (gin_pending_list_limit = 1024) where search_text is not null', v_gin);
end
$$;
-- Whoever fills a list of entries that wait files all of them, with its chat locked: 4 MiB took 300 ms, a quarter takes 20,
-- and on average a message no longer.
alter index app.messages_search_idx set (gin_pending_list_limit = 1024);

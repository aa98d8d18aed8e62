-- One page of the chats of an organization whose title or visible text holds p_search, latest message first: case does not
-- count, and no character is special. (p_last_message_at_us, p_id) is the key that the page begins after (at, when
-- p_inclusive), in microseconds since 1970; p_backward reads the page before it instead, nearest row first. At most p_limit
-- rows: the caller asks for one more than it shows. Under row security `like` and `@>` would not use the index, so that the
-- organization is named in every statement.
-- What is common is found soonest by walking the chats in their order, what is rare by an index: the walk comes first, and
-- when it has read enough without filling the page, the index says how rare it is (scripts/bench/README.md, Search).
create or replace function app.chats_search(
  p_organization_id uuid, p_search text, p_status text, p_last_message_at_us bigint, p_id uuid, p_inclusive boolean,
  p_backward boolean, p_limit integer)
  returns setof app.chats
  language plpgsql stable security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  -- Messages that the walk reads before it asks the index, of one chat and of all.
  v_of_chat constant integer := 500;
  v_of_all constant integer := 3000;
  -- With more hits than these the walk goes on: sorting out all of them would take longer.
  v_rare constant integer := 3000;
  v_text constant text := lower(p_search);
  v_like constant text := '%' || regexp_replace(v_text, '([\\%_])', '\\\1', 'g') || '%';
  v_grams constant text[] := app.search_grams(v_text);
  -- Trigrams are made of three letters or digits in a row; whether others than these are letters, is the locale's to say.
  v_trigrams constant boolean := v_text ~ '[a-z0-9]{3}';
  v_at timestamptz := timestamptz 'epoch' + p_last_message_at_us / 1000000 * interval '1 second'
    + p_last_message_at_us % 1000000 * interval '1 microsecond';
  v_id uuid := p_id;
  v_inclusive boolean := p_inclusive;
  v_read integer := 0;
  v_found integer := 0;
  v_common boolean := false;
  v_from text := ' from app.chats c where c.organization_id = $1 and c.removed_at is null'
    || case when p_status is null then '' else ' and c.status = $2' end;
  v_after text := format(' and (c.last_message_at, c.id) %s ($3, $4) and ($5 or c.id <> $4)',
    case when p_backward then '>=' else '<=' end);
  v_order text := case when p_backward then ' order by c.last_message_at, c.id'
    else ' order by c.last_message_at desc, c.id desc' end;
  v_hits uuid[];
  v_count integer;
  v_hit boolean;
  c app.chats;
begin
  if not exists (select 1 from app.organizations where id = p_organization_id and deleted_at is null) then
    return;
  end if;
  for c in execute 'select c.*' || v_from || case when p_id is null then '' else v_after end || v_order
    using p_organization_id, p_status, v_at, v_id, v_inclusive
  loop
    select coalesce(bool_or(m.hit), false), count(*) into v_hit, v_count
      from (select strpos(k.search_text, v_text) > 0 as hit from app.messages k
              where k.organization_id = p_organization_id and k.chat_id = c.id
              order by k.created_at desc limit case when v_common then null else v_of_chat end) m;
    v_read := v_read + v_count;
    v_hit := v_hit or strpos(lower(c.title), v_text) > 0;
    if not v_common and (v_read > v_of_all or not v_hit and v_count = v_of_chat) then
      -- By statements of their own, planned for this very text.
      execute 'select array_agg(distinct h.chat_id), count(*)
          from (select m.chat_id from app.messages m where m.organization_id = $1 and m.search_text is not null and '
          || case when v_trigrams then 'm.search_text like $2'
               else 'app.search_grams(m.search_text) @> $3 and m.search_text like $2' end || ' limit $4) h'
        into v_hits, v_count using p_organization_id, v_like, v_grams, v_rare + 1;
      if v_count <= v_rare then
        return query execute 'select c.*' || v_from || v_after
            || ' and (c.id = any ($6) or lower(c.title) like $7)' || v_order || ' limit $8'
          using p_organization_id, p_status, c.last_message_at, c.id, true, coalesce(v_hits, '{}'), v_like,
            p_limit - v_found;
        return;
      end if;
      v_common := true;
      v_hit := v_hit or exists (select 1 from app.messages k
        where k.organization_id = p_organization_id and k.chat_id = c.id and strpos(k.search_text, v_text) > 0);
    end if;
    if v_hit then
      return next c;
      v_found := v_found + 1;
      exit when v_found = p_limit;
    end if;
  end loop;
end
$$;

alter function app.chats_search owner to runner_global;
revoke all on function app.chats_search from public;
grant execute on function app.chats_search to runner_api;

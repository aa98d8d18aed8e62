-- One page of the organization's chats whose title or visible text contains p_search, latest message first. Ignores case; no
-- character is special. (p_last_message_at_us, p_id) is the key after which the page begins (at which, with p_inclusive), in
-- microseconds since 1970; p_backward reads the page before it, nearest row first. Returns at most p_limit rows; the caller
-- asks for one more than it shows. Under row security `like` and `@>` would not use an index, so every statement names the
-- organization.
-- A frequent text is found fastest by walking the chats in order, a rare one by an index. The walk comes first. If it has read
-- enough messages without filling the page, the index of character pairs tells which chats may contain the text, without
-- reading messages, and the walk continues among those. If the pairs are frequent and the text is not, the trigram index finds
-- it (scripts/bench/README.md, Search).
create or replace function app.chats_search(
  p_organization_id uuid, p_search text, p_status text, p_last_message_at_us bigint, p_id uuid, p_inclusive boolean,
  p_backward boolean, p_limit integer)
  returns setof app.chats
  language plpgsql stable security definer
as $$
declare
  -- Messages that the walk reads before it uses the index: of one chat, and in total.
  v_of_chat constant integer := 500;
  v_of_all constant integer := 3000;
  -- Pieces of long messages that it reads of one chat, each in place of so many messages.
  v_chunks_of_chat constant integer := 40;
  v_weight constant integer := 10;
  -- With more hits than this, they are not checked one by one.
  v_rare constant integer := 3000;
  v_rare_chunks constant integer := 100;
  -- Chats sampled to tell whether the pairs are selective.
  v_sample constant integer := 20;
  v_text constant text := app.search_fold(p_search);
  -- A pair is more selective than its characters.
  v_grams constant text[] := array(select g from unnest(app.search_grams(v_text)) g where length(g) = least(length(v_text), 2));
  -- Trigrams consist of three letters or digits in a row; the locale decides which other characters are letters.
  v_trigrams constant boolean := v_text ~ '[a-z0-9]{3}';
  v_like constant text := '%' || regexp_replace(v_text, '[^a-z0-9]+', '%', 'g') || '%';
  v_at timestamptz := timestamptz 'epoch' + p_last_message_at_us / 1000000 * interval '1 second'
    + p_last_message_at_us % 1000000 * interval '1 microsecond';
  v_id uuid := p_id;
  v_inclusive boolean := p_inclusive;
  v_read integer := 0;
  v_found integer := 0;
  v_from text := ' from app.chats c where c.organization_id = $1 and c.removed_at is null'
    || case when p_status is null then '' else ' and c.status = $2' end;
  v_after text := format(' and (c.last_message_at, c.id) %s ($3, $4) and ($5 or c.id <> $4)',
    case when p_backward then '>=' else '<=' end);
  v_order text := case when p_backward then ' order by c.last_message_at, c.id'
    else ' order by c.last_message_at desc, c.id desc' end;
  -- `offset 0` makes the planner check one chat at a time.
  v_holds text := 'exists (select from app.messages k where k.organization_id = $1 and k.chat_id = c.id
    and strpos(k.search_text, $6) > 0 offset 0)';
  v_holds_beyond text := 'exists (select from app.message_chunks k where k.organization_id = $1 and k.chat_id = c.id
    and strpos(k.search_text, $6) > 0 offset 0)';
  v_titled text := case when v_trigrams then 'c.search_title like $9 and ' else '' end
    || 'strpos(c.search_title, $6) > 0';
  v_chats uuid[];
  v_beyond uuid[];
  v_hits uuid[];
  v_count integer;
  v_chunks integer;
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
              order by k.created_at desc limit v_of_chat) m;
    v_read := v_read + v_count;
    v_hit := v_hit or strpos(c.search_title, v_text) > 0;
    if not v_hit and v_count < v_of_chat then
      select coalesce(bool_or(m.hit), false), count(*) into v_hit, v_chunks
        from (select strpos(k.search_text, v_text) > 0 as hit from app.message_chunks k
                where k.organization_id = p_organization_id and k.chat_id = c.id and k.search_text is not null
                limit v_chunks_of_chat) m;
      v_read := v_read + v_weight * v_chunks;
      if v_chunks = v_chunks_of_chat then
        v_count := v_of_chat;
      end if;
    end if;
    if v_read > v_of_all or not v_hit and v_count = v_of_chat then
      select g.chat_ids, g.message_count, g.chunk_chat_ids into v_chats, v_count, v_beyond
        from app.chats_with_grams(p_organization_id, v_grams) g;
      if v_trigrams and cardinality(v_beyond) > 0 then
        execute 'select array_agg(distinct h.chat_id), count(*) from (select k.chat_id from app.message_chunks k
            where k.organization_id = $1 and k.search_text like $2 and strpos(k.search_text, $3) > 0 limit $4) h'
          into v_hits, v_chunks using p_organization_id, v_like, v_text, v_rare_chunks + 1;
        if v_chunks <= v_rare_chunks then
          v_beyond := coalesce(v_hits, '{}');
          v_holds_beyond := 'true';
        end if;
      end if;
      if v_trigrams and v_count > v_rare then
        execute 'select count(*) from (select c.id' || v_from || v_after || ' and c.id = any ($7)' || v_order
            || ' limit $8) c where ' || v_holds
          into v_count
          using p_organization_id, p_status, c.last_message_at, c.id, true, v_text, v_chats, v_sample;
        if v_count < v_sample / 2 then
          execute 'select array_agg(h.chat_id), count(*) from (select m.chat_id from app.messages m
              where m.organization_id = $1 and m.search_text like $2 and strpos(m.search_text, $3) > 0 limit $4) h'
            into v_hits, v_count using p_organization_id, v_like, v_text, v_rare + 1;
          if v_count <= v_rare then
            v_chats := coalesce(v_hits, '{}');
          end if;
        end if;
      end if;
      return query execute 'select c.*' || v_from || v_after || ' and (' || v_titled || ' or c.id = any ($7) and '
          || v_holds || ' or c.id = any ($10) and ' || v_holds_beyond || ')' || v_order || ' limit $8'
        using p_organization_id, p_status, c.last_message_at, c.id, true, v_text, v_chats, p_limit - v_found, v_like, v_beyond;
      return;
    end if;
    if v_hit then
      return next c;
      v_found := v_found + 1;
      exit when v_found = p_limit;
    end if;
  end loop;
end
$$;

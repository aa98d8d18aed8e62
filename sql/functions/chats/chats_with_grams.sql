-- The organization's chats with a message whose text contains all of p_grams (app.search_grams), and the number of such
-- messages; and those that have them in one piece of a long message (app.message_chunks). Reads none of their texts. Unsorted:
-- sorting so many chats would take longer than finding them.
create or replace function app.chats_with_grams(
  p_organization_id uuid, p_grams text[], out chat_ids uuid[], out message_count bigint, out chunk_chat_ids uuid[])
  language sql stable
  set enable_sort = off
as $$
  select coalesce(array_agg(h.chat_id), '{}'), coalesce(sum(h.count), 0)::bigint,
    array(select distinct k.chat_id from app.message_chunks k
            where k.organization_id = p_organization_id and k.search_text is not null
              and app.search_grams(k.search_text) collate "C" @> p_grams)
  from (select m.chat_id, count(*) from app.messages m
          where m.organization_id = p_organization_id and m.search_text is not null
            and app.search_grams(m.search_text) collate "C" @> p_grams
          group by m.chat_id) h
$$;

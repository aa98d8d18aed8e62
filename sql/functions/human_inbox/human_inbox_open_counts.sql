-- How many items of each kind are open, in all organizations: {question: n, notification: n, …}. At most 10,000 of a kind are
-- counted. For metrics.
create or replace function app.human_inbox_open_counts()
  returns jsonb
  language sql stable security definer
as $$
  select jsonb_object_agg(k.kind, (
      select count(*) from (
        select from app.human_inbox_items i where i.status = 'open' and i.kind = k.kind limit 10000) o))
    from (values ('question'), ('notification'), ('approval'), ('reconciliation')) k(kind)
$$;

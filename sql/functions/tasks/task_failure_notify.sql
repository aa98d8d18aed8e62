-- Notifies people of a failure that nothing retries by itself: what failed, why, what ended with it, and what they can do. The item
-- closes when it is acknowledged or the failure is retried (task_retry).
-- Called by task_fail once per failure, with the roots locked, after the open items of what failed were closed. The index on
-- open items keeps a second one out. Locks: (roots) → inbox item.
create or replace function app.task_failure_notify(p_organization_id uuid, p_task_id uuid, p_error jsonb)
  returns void
  language sql
as $$
  insert into app.human_inbox_items (organization_id, kind, purpose, title, body, task_id, run_id)
    select p_organization_id, 'notification', 'failure', left('Failed: ' || t.title, 500),
        -- What a command wrote last says most: the end of a long message is kept.
        format(E'%s failed%s, and is not tried again.%s%s\n\n%s: %s\n\n', n.name,
          case when r.attempt > 1 then format(' after %s attempts', r.attempt) end,
          ' Failed with it: ' || o.failed || '.',
          case o.cancelled when 0 then null when 1 then ' Cancelled with it: one open task.'
            else format(' Cancelled with it: %s open tasks.', o.cancelled) end,
          p_error ->> 'code', right(p_error ->> 'message', 2000))
          || format('Once the cause is fixed, retry %s: that reopens everything that ended with it. Acknowledge this to leave it '
            'failed.', n.name),
        t.id, r.id
      from app.tasks t
      cross join lateral (select t.identifier_scope || '-' || t.identifier_number as name) n
      left join lateral (
        select u.id, u.attempt from app.runs u
          where u.organization_id = t.organization_id and u.task_id = t.id
          order by u.created_at desc, u.id desc limit 1
      ) r on true
      cross join lateral (
        select string_agg(k.identifier_scope || '-' || k.identifier_number, ', ' order by k.depth desc)
            filter (where k.status = 'failed') as failed,
          count(*) filter (where k.status = 'cancelled') as cancelled
          from app.tasks k
          where k.organization_id = t.organization_id and k.root_task_id = t.root_task_id
            and k.failure_origin_id = t.id and k.id <> t.id
      ) o
      where t.organization_id = p_organization_id and t.id = p_task_id
    on conflict (organization_id, task_id, purpose)
      where status = 'open' and purpose in ('repair', 'budget', 'prerequisite', 'failure') do nothing
$$;

-- Inbox item (none) → open, in the transaction that brings an action into a state in which a person decides: approval of one that
-- awaits it, reconciliation of one whose outcome is unknown. The caller has locked the action.
create or replace function app.action_item_open(a app.actions)
  returns void
  language sql
as $$
  insert into app.human_inbox_items (organization_id, kind, purpose, title, body, action_id, task_id, run_id, chat_id)
    select a.organization_id, k.kind, k.kind,
        left(case k.kind when 'approval' then 'Approve: ' else 'Find out what became of: ' end || a.summary, 500),
        a.summary || coalesce(E'\n\n' || (a.reason ->> 'message'), ''), a.id, a.task_id, a.run_id, a.chat_id
      from (values (case a.status when 'awaiting_approval' then 'approval' else 'reconciliation' end)) k(kind)
$$;

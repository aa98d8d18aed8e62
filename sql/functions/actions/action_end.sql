-- What follows from the new state of an action, in its own transaction: its open item in the inbox → p_item (resolved | cancelled). A
-- task that waits for it is settled when it is over: once, as the last one of those that it waits for ends.
-- The caller has locked root and action, and written the action.
create or replace function app.action_end(a app.actions, p_item text)
  returns void
  language plpgsql
as $$
begin
  update app.human_inbox_items set status = p_item, updated_at = clock_timestamp()
    where organization_id = a.organization_id and action_id = a.id and status = 'open';
  if a.status not in ('awaiting_approval', 'approved', 'executing', 'unknown') and exists (
      select from app.tasks t
        where t.organization_id = a.organization_id and t.id = a.task_id and t.waiting_action_ids ? a.id::text) then
    perform app.task_settle(a.organization_id, a.task_id);
  end if;
end
$$;

-- What follows from the new state of an action, in its own transaction: its open item in the inbox → p_item (resolved | cancelled).
-- The caller has locked root and action, and written the action.
create or replace function app.action_end(a app.actions, p_item text)
  returns void
  language plpgsql
as $$
begin
  update app.human_inbox_items set status = p_item, updated_at = clock_timestamp()
    where organization_id = a.organization_id and action_id = a.id and status = 'open';
end
$$;

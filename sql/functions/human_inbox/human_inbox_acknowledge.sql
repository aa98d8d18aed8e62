-- Notification open → acknowledged (docs/interface.md 3.7). Nothing waits for it. Locks: inbox item.
-- Codes: 400 validation_failed (another kind), 404 organization_not_found | human_inbox_item_not_found, 409
-- human_inbox_item_not_open.
create or replace function app.human_inbox_acknowledge(p_organization_id uuid, p_inbox_item_id uuid)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  i app.human_inbox_items := app.human_inbox_item_lock(p_organization_id, p_inbox_item_id);
begin
  if i.status <> 'open' then
    perform app.fail(409, 'human_inbox_item_not_open', format('The item is %s', i.status));
  end if;
  if i.kind <> 'notification' then
    perform app.fail(400, 'validation_failed', 'Only notifications are acknowledged',
      app.issue('inboxItemId', 'not_a_notification', case i.kind when 'question' then 'is a question: respond to it'
        else 'is decided at its action' end));
  end if;
  update app.human_inbox_items
    set status = 'acknowledged', responded_at = clock_timestamp(), updated_at = clock_timestamp()
    where organization_id = p_organization_id and id = i.id
    returning * into i;
  return jsonb_build_object('item', to_jsonb(i));
end
$$;

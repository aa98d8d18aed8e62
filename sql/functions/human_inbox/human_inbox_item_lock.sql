-- Locks and returns the item, if its organization exists. Codes: 404 organization_not_found | human_inbox_item_not_found.
create or replace function app.human_inbox_item_lock(p_organization_id uuid, p_inbox_item_id uuid)
  returns app.human_inbox_items
  language plpgsql
as $$
declare
  i app.human_inbox_items;
begin
  if not exists (select 1 from app.organizations where id = p_organization_id and deleted_at is null) then
    perform app.fail(404, 'organization_not_found', 'Organization not found');
  end if;
  select * into i from app.human_inbox_items
    where organization_id = p_organization_id and id = p_inbox_item_id for no key update;
  if not found then
    perform app.fail(404, 'human_inbox_item_not_found', 'Inbox item not found');
  end if;
  return i;
end
$$;

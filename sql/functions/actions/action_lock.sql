-- Locks and returns an action of an organization that exists. p_root: the root of its task is locked first, for what may settle it.
-- An action never changes its task, so that is read without a lock.
-- Locks: root (p_root) → action. Codes: 404 organization_not_found | action_not_found.
create or replace function app.action_lock(p_organization_id uuid, p_action_id uuid, p_root boolean)
  returns app.actions
  language plpgsql
as $$
declare
  a app.actions;
begin
  if not exists (select 1 from app.organizations where id = p_organization_id and deleted_at is null) then
    perform app.fail(404, 'organization_not_found', 'Organization not found');
  end if;
  if p_root then
    perform app.task_roots_lock(p_organization_id, array(
      select task_id from app.actions where organization_id = p_organization_id and id = p_action_id and task_id is not null), false);
  end if;
  select * into a from app.actions where organization_id = p_organization_id and id = p_action_id for no key update;
  if not found then
    perform app.fail(404, 'action_not_found', 'Action not found');
  end if;
  return a;
end
$$;

-- Cancels what awaits or has an approval of integrations whose connection is another one, or none, or that are deleted. The caller has
-- locked all of these integrations, so that nothing is proposed for them meanwhile, and no root.
-- Locks: (integrations) → roots → actions by id → inbox items → … as task_settle.
create or replace function app.actions_cancel_of_integrations(
  p_organization_id uuid, p_integration_ids uuid[],
  p_reason jsonb default
    '{"code": "connection_replaced", "message": "The connection that it was proposed for is gone, or another one"}')
  returns void
  language plpgsql
as $$
declare
  v_ids uuid[];
  v_task_ids uuid[];
begin
  select coalesce(array_agg(a.id), '{}'), array_agg(distinct a.task_id) filter (where a.task_id is not null)
    into v_ids, v_task_ids
    from app.actions a
    where a.organization_id = p_organization_id and a.integration_id = any (p_integration_ids)
      and a.status in ('awaiting_approval', 'approved');
  if v_task_ids is not null then
    perform app.task_roots_lock(p_organization_id, v_task_ids, false);
  end if;
  perform app.actions_cancel(p_organization_id, v_ids, p_reason);
end
$$;

-- Actions awaiting_approval | approved → cancelled, with p_reason {code, message}; their items in the inbox → cancelled. Whatever else
-- they are they stay. The caller has locked the roots of their tasks. Locks: (roots) → actions by id → inbox items → … as task_settle.
create or replace function app.actions_cancel(p_organization_id uuid, p_action_ids uuid[], p_reason jsonb)
  returns void
  language plpgsql
as $$
declare
  a app.actions;
begin
  if p_action_ids = '{}' then
    return;
  end if;
  perform 1 from app.actions where organization_id = p_organization_id and id = any (p_action_ids)
    order by id for no key update;
  for a in
    update app.actions
      set status = 'cancelled', version = version + 1, reason = p_reason, due_at = null, lease_expires_at = null,
        updated_at = clock_timestamp()
      where organization_id = p_organization_id and id = any (p_action_ids) and status in ('awaiting_approval', 'approved')
      returning *
  loop
    perform app.action_end(a, 'cancelled');
  end loop;
end
$$;

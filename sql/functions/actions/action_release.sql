-- Gives the lease of an approved action back before anything was sent: it is due again after p_seconds. A lease that is gone gives
-- nothing back. Returns {released}. Locks: action. Codes: 404 organization_not_found | action_not_found.
create or replace function app.action_release(p_organization_id uuid, p_action_id uuid, p_lease_id uuid, p_seconds integer)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  a app.actions := app.action_lock(p_organization_id, p_action_id, false);
begin
  if a.status <> 'approved' or a.lease_id is distinct from p_lease_id or a.lease_expires_at is null then
    return '{"released": false}';
  end if;
  update app.actions
    set lease_expires_at = null, due_at = clock_timestamp() + make_interval(secs => p_seconds), updated_at = clock_timestamp()
    where organization_id = p_organization_id and id = a.id;
  return '{"released": true}';
end
$$;

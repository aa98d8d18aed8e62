-- Hides the organization immediately, ends its claims, leases and capabilities, and cancels its actions. A job removes rows and
-- objects.
-- Locks: organization → run requests → runs → actions → dispatch. Codes: 404 organization_not_found (also for a repeat).
create or replace function app.organization_delete(p_organization_id uuid)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  o app.organizations;
begin
  select * into o from app.organizations where id = p_organization_id and deleted_at is null for no key update;
  if not found then
    perform app.fail(404, 'organization_not_found', 'Organization not found');
  end if;
  update app.organizations set deleted_at = clock_timestamp() where id = o.id;
  update app.run_requests
    set state = 'cancelled', finished_at = clock_timestamp(), lease_secret_hash = null, lease_expires_at = null
    where organization_id = o.id and state in ('leased', 'started');
  update app.runs
    set status = 'cancelled', finished_at = clock_timestamp(), updated_at = clock_timestamp()
    where organization_id = o.id and status in ('starting', 'running');
  -- Their items in the inbox are hidden with the organization.
  update app.actions
    set status = 'cancelled', version = version + 1, due_at = null, lease_expires_at = null, updated_at = clock_timestamp(),
      reason = '{"code": "organization_deleted", "message": "Its organization was deleted"}'
    where organization_id = o.id and status in ('awaiting_approval', 'approved');
  update app.dispatch set suspended = true where organization_id = o.id;
  perform app.enqueue('organizations__delete', jsonb_build_object('organizationId', o.id),
    'organizations__delete:' || o.id);
  return jsonb_build_object('organization', to_jsonb(o));
end
$$;

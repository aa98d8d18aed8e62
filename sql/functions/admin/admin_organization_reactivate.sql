-- Organization suspended → active or, if its onboarding is not completed, → onboarding: organization_update with its audit
-- entry. One that is onboarded elsewhere, without an onboarding, becomes active. One that is not suspended stays unchanged,
-- which is recorded too.
-- Locks: organization → … as organization_update. Returns {organization, audit_entry_id}. Codes: 404 organization_not_found.
create or replace function app.admin_organization_reactivate(
  p_organization_id uuid, p_admin text, p_request_id text default null)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_patch jsonb := '{}';
  v_response jsonb;
  o app.organizations;
begin
  -- The completion of the onboarding needs this lock too, so the status chosen here stays correct.
  select * into o from app.organizations where id = p_organization_id for no key update;
  if o.status = 'suspended' then
    v_patch := jsonb_build_object('status', case when exists (
      select 1 from app.onboardings where organization_id = p_organization_id and status <> 'completed')
      then 'onboarding' else 'active' end);
  end if;
  v_response := app.organization_update(p_organization_id, v_patch, true);
  return app.admin_record(p_organization_id, p_admin, 'organization.reactivate', 'organization', p_organization_id::text,
    '{}', v_response, jsonb_build_object('status', v_response #> '{organization,status}'), p_request_id);
end
$$;

-- Organization active | onboarding → suspended by decision of an administrator: organization_update with its audit entry. A
-- repeat changes nothing, but is recorded too. Returns {organization, audit_entry_id}. Codes: 404 organization_not_found.
create or replace function app.admin_organization_suspend(
  p_organization_id uuid, p_admin text, p_request_id text default null)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_response jsonb := app.organization_update(p_organization_id, '{"status": "suspended"}', true);
begin
  return app.admin_record(p_organization_id, p_admin, 'organization.suspend', 'organization', p_organization_id::text,
    '{}', v_response, jsonb_build_object('status', v_response #> '{organization,status}'), p_request_id);
end
$$;

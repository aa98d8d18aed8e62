-- Work dispatch stopped → dispatching by decision of an administrator: work_dispatch_set with its audit entry. A repeat changes
-- nothing, but is a decision of its own and gets an entry.
-- Returns {organization, published_run_requests, audit_entry_id}. Codes: 404 organization_not_found.
create or replace function app.admin_dispatch_resume(
  p_organization_id uuid, p_admin text, p_request_id text default null)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_response jsonb := app.work_dispatch_set(p_organization_id, false, '{"kind": "owner"}');
begin
  return app.admin_record(p_organization_id, p_admin, 'dispatch.resume', 'organization', p_organization_id::text, '{}',
    v_response, jsonb_build_object('publishedRunRequests', v_response -> 'published_run_requests'), p_request_id);
end
$$;

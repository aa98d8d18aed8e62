-- Refuses to onboard a suspended organization: nothing would be handed out, and the completion would lift the suspension.
-- Codes: 409 request_failed (suspended).
create or replace function app.onboarding_require_running(p_organization_id uuid)
  returns void
  language plpgsql
as $$
begin
  if exists (select 1 from app.organizations where id = p_organization_id and status = 'suspended') then
    perform app.fail(409, 'request_failed', 'The organization is suspended: its onboarding goes on when that is lifted',
      app.issue('status', 'suspended', 'is suspended'));
  end if;
end
$$;

-- The onboarding, with the review as of now: a source may have turned out to be broken since the last change.
-- Returns {onboarding}. Codes: 404 request_failed (none, or the organization is deleted).
create or replace function app.onboarding_read(p_organization_id uuid)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  o app.onboardings;
begin
  select b.* into o from app.onboardings b join app.organizations g on g.id = b.organization_id
    where b.organization_id = p_organization_id and b.status <> 'discarded' and g.deleted_at is null;
  if not found then
    perform app.fail(404, 'request_failed', 'There is no onboarding with this organization id');
  end if;
  if o.status = 'review' then
    o.review := app.onboarding_review(o);
  end if;
  return jsonb_build_object('onboarding', app.onboarding_state(o));
end
$$;

-- Decides what happens to an integration. collecting | research_failed | review stay; review gets a new review. A repeat
-- changes nothing. Locks: onboarding. Returns {onboarding}.
-- Codes: 404 request_failed, 409 request_failed (stale, not_permitted, more than 100 integrations).
create or replace function app.onboarding_disposition_put(
  p_organization_id uuid, p_expected_generation integer, p_integration_key text, p_disposition text,
  p_departments jsonb)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_item constant jsonb := jsonb_build_object('integrationKey', p_integration_key, 'disposition', p_disposition,
    'departments', p_departments);
  o app.onboardings;
begin
  o := app.onboarding_lock(p_organization_id, p_expected_generation, '{collecting, research_failed, review}');
  if exists (select 1 from jsonb_array_elements(o.integrations) i where i = v_item) then
    return jsonb_build_object('onboarding', app.onboarding_state(o));
  end if;
  select jsonb_agg(i order by i ->> 'integrationKey') into o.integrations
    from (select i from jsonb_array_elements(o.integrations) i where i ->> 'integrationKey' <> p_integration_key
          union all select v_item) all_of_them(i);
  if jsonb_array_length(o.integrations) > 100 then
    perform app.fail(409, 'request_failed', 'An onboarding decides on at most 100 integrations');
  end if;
  o := app.onboarding_write(o);
  return jsonb_build_object('onboarding', app.onboarding_state(o));
end
$$;

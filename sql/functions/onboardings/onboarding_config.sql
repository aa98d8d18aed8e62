-- The configuration of the organization that follows from a setup: time zone and enabled departments.
create or replace function app.onboarding_config(p_setup jsonb)
  returns jsonb
  language sql immutable
as $$
  select jsonb_build_object('timezone', p_setup -> 'timezone', 'departments', (
    select jsonb_object_agg(d, jsonb_build_object('enabled', p_setup -> 'departments' ? d))
      from unnest(array['growth', 'engineering', 'support']) d))
$$;

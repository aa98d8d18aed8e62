-- What a setup says about the configuration of its organization: time zone, and which departments are enabled.
create or replace function app.onboarding_config(p_setup jsonb)
  returns jsonb
  language sql immutable
as $$
  select jsonb_build_object('timezone', p_setup -> 'timezone', 'departments', (
    select jsonb_object_agg(d, jsonb_build_object('enabled', p_setup -> 'departments' ? d))
      from unnest(array['growth', 'engineering', 'support']) d))
$$;

-- Onboarding (none) → collecting, with a new organization in status onboarding (docs/interface.md 4.1). Work dispatch of its
-- tasks is held until the onboarding is completed; chat turns are exempt.
-- p_fields: {name, timezone, departments[], website, defaultCurrency, slug} or, instead of slug, slugBase: a slug made from the
-- name ('' if nothing of it is usable), to which a number is appended if it is taken.
-- p_subject: as in organization_create. Returns {onboarding}. Codes: 409 request_failed (slug in use).
create or replace function app.onboarding_create(
  p_organization_id uuid default app.uuid_v7(), p_fields jsonb default '{}', p_subject text default null)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_base text := coalesce(nullif(p_fields ->> 'slugBase', ''),
    'org-' || right(replace(p_organization_id::text, '-', ''), 12));
  v_organization jsonb := jsonb_build_object('name', p_fields -> 'name', 'status', 'onboarding', 'config',
    app.onboarding_config(p_fields));
  o app.onboardings;
begin
  if p_fields ? 'slug' then
    perform app.organization_create(p_organization_id, v_organization || jsonb_build_object('slug', p_fields -> 'slug'),
      p_subject);
  else
    for v_try in 1 .. 20 loop
      begin
        perform app.organization_create(p_organization_id,
          v_organization || jsonb_build_object('slug', app.organization_slug_free(v_base)), p_subject);
        exit;
      exception when sqlstate 'RN409' then
        -- Another organization took the slug between the check and the insert.
        if v_try = 20 then
          raise;
        end if;
      end;
    end loop;
  end if;
  insert into app.onboardings (organization_id, setup, created_at, updated_at)
    values (p_organization_id,
      '{"website": null, "defaultCurrency": null, "summary": null}' || (p_fields - 'slug' - 'slugBase'),
      clock_timestamp(), clock_timestamp())
    returning * into o;
  return jsonb_build_object('onboarding', app.onboarding_state(o));
end
$$;

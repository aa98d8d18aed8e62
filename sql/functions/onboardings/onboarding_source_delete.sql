-- Deletes an uploaded source and the claims that cite it. collecting | research_failed stay; review → collecting.
-- Locks: onboarding → source. Returns {onboarding, removedKeys}.
-- Codes: 404 request_failed (the onboarding, or the source), 409 request_failed (not_permitted).
create or replace function app.onboarding_source_delete(p_organization_id uuid, p_source_id uuid)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_key text;
  o app.onboardings;
begin
  o := app.onboarding_lock(p_organization_id, null, '{collecting, research_failed, review}');
  if not exists (select 1 from app.context_sources
                 where organization_id = p_organization_id and id = p_source_id and origin = 'onboarding') then
    perform app.fail(404, 'request_failed', 'The onboarding has no source with this id',
      app.issue('sourceId', 'not_found', 'names no source that was put'));
  end if;
  v_key := app.context_source_delete(p_organization_id, p_source_id);
  delete from app.research_findings where organization_id = p_organization_id and source_ids ? p_source_id::text;
  if o.status = 'review' then
    o.status := 'collecting';
  end if;
  o := app.onboarding_write(o);
  return jsonb_build_object('onboarding', app.onboarding_state(o), 'removedKeys', jsonb_build_array(v_key));
end
$$;

-- Onboarding collecting | research_failed → researching: enables the catalog's chat profile, opens the onboarding chat if there
-- is none, and queues the research. Locks: organization → onboarding → profiles. Returns {onboarding}.
-- Codes: 404 request_failed, 409 request_failed (not_permitted, suspended), 409 state_conflict (a profile made by hand has the
-- key of the chat profile), 503 request_failed (no catalog is published).
create or replace function app.onboarding_start(p_organization_id uuid)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_now timestamptz := clock_timestamp();
  o app.onboardings;
begin
  perform 1 from app.organizations where id = p_organization_id for no key update;
  o := app.onboarding_lock(p_organization_id, null, '{collecting, research_failed}');
  perform app.onboarding_require_running(p_organization_id);
  perform app.agent_profiles_provision(p_organization_id, '{}', null, '{chat}');
  if o.chat_id is null then
    insert into app.chats (organization_id, title, is_onboarding, last_message_at, created_at, updated_at)
      values (p_organization_id, 'Onboarding', true, v_now, v_now, v_now)
      returning id into o.chat_id;
  end if;
  o := app.onboarding_research_queue(o);
  return jsonb_build_object('onboarding', app.onboarding_state(o));
end
$$;

-- Adds what the chat profile found out for the onboarding chat. Works until the completion and, in review, makes a new review.
-- p_findings: [{claim, evidence: [source id]}], p_warnings: [{code, message}]; both empty: only checks whether it is allowed.
-- Locks: onboarding → run request of the capability. Returns {onboarding}.
-- Codes: 400 request_failed (unknown_source), 401 agent_unauthorized, 404 request_failed, 409 request_failed (not_permitted,
-- more than 500 claims).
create or replace function app.onboarding_findings_add(
  p_organization_id uuid, p_findings jsonb, p_warnings jsonb, p_actor jsonb)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_new jsonb;
  o app.onboardings;
begin
  o := app.onboarding_chat_lock(p_organization_id, p_actor);
  select coalesce(jsonb_agg(w), '[]') into v_new
    from jsonb_array_elements(p_warnings) w where not o.research_warnings @> jsonb_build_array(w);
  if p_findings <> '[]' or v_new <> '[]' then
    perform app.onboarding_findings_insert(p_organization_id, p_findings, 'chat');
    o.research_warnings := o.research_warnings || v_new;
    o := app.onboarding_write(o);
  end if;
  return jsonb_build_object('onboarding', app.onboarding_state(o));
end
$$;

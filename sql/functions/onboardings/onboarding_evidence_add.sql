-- Records what the onboarding's research has read, as a source of origin research: for the attempt that p_generation names, or
-- (p_actor) for the chat profile in a turn of the onboarding chat. The latter works until the completion and, in review, makes
-- a new review. p_source as in context_source_insert; its dedupeKey prevents duplicates after a retry.
-- Locks: onboarding → run request of the capability. Returns {source}, the row, or null if the attempt is over. If the row has
-- another storage_key, the caller deletes its bytes.
-- Codes: 401 agent_unauthorized, 404 request_failed, 409 request_failed (not_permitted), 409 state_conflict (in_use).
create or replace function app.onboarding_evidence_add(
  p_organization_id uuid, p_generation integer, p_source jsonb, p_actor jsonb default null)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  o app.onboardings;
  s app.context_sources;
begin
  if p_actor is null then
    o := app.onboarding_research_lock(p_organization_id, p_generation);
    if o.organization_id is null then
      return '{"source": null}';
    end if;
  else
    o := app.onboarding_chat_lock(p_organization_id, p_actor);
  end if;
  s := app.context_source_insert(p_organization_id, p_source || '{"origin": "research"}');
  if p_actor is not null then
    perform app.onboarding_write(o);
  end if;
  return jsonb_build_object('source', to_jsonb(s));
end
$$;

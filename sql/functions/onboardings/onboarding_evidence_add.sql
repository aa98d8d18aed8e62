-- Keeps what the research of the onboarding read, as a source of origin research: of the attempt that p_generation names, or
-- (p_actor) of the chat profile that was asked in the onboarding chat, which works until the completion and, in review,
-- makes a new review. p_source as in context_source_insert; its dedupeKey keeps a retry from doubling it.
-- Locks: onboarding → run request of the capability. Returns {source}, the row, null when the attempt is over; the bytes
-- of a source with another storage_key are the caller's to throw away.
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

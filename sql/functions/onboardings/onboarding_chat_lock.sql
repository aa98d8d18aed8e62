-- Locks and returns the onboarding, for a turn of its chat: only the chat profile researches on demand (docs/interface.md
-- 4.12.3). Locks: onboarding → run request.
-- Codes: 401 agent_unauthorized, 404 request_failed, 409 request_failed (not_permitted: completed).
create or replace function app.onboarding_chat_lock(p_organization_id uuid, p_actor jsonb)
  returns app.onboardings
  language plpgsql
as $$
declare
  v_actor jsonb;
  o app.onboardings;
begin
  select * into o from app.onboardings where organization_id = p_organization_id for no key update;
  v_actor := app.actor_require(p_organization_id, p_actor);
  if v_actor ->> 'profileKind' is distinct from 'chat' or o.chat_id is null
     or (v_actor ->> 'chatId')::uuid is distinct from o.chat_id then
    perform app.fail(401, 'agent_unauthorized', 'Only the chat profile researches, and in the onboarding chat alone');
  end if;
  return app.onboarding_lock(p_organization_id, null, '{collecting, researching, research_failed, review}');
end
$$;

-- Locks and returns the onboarding if its status is one of p_allowed; p_generation null: any generation. Called by its
-- transitions.
-- Codes: 404 request_failed (none, discarded, or the organization is deleted), 409 request_failed (stale, not_permitted).
create or replace function app.onboarding_lock(p_organization_id uuid, p_generation integer, p_allowed text[])
  returns app.onboardings
  language plpgsql
as $$
declare
  v_message text;
  o app.onboardings;
begin
  select * into o from app.onboardings where organization_id = p_organization_id for no key update;
  if not found or o.status = 'discarded'
     or not exists (select 1 from app.organizations where id = p_organization_id and deleted_at is null) then
    perform app.fail(404, 'request_failed', 'There is no onboarding with this organization id');
  end if;
  if p_generation <> o.generation then
    perform app.fail(409, 'request_failed', 'The onboarding has changed meanwhile: read it, and send its generation',
      app.issue('expectedGeneration', 'stale', format('the generation is %s', o.generation)));
  end if;
  if not o.status = any (p_allowed) then
    v_message := 'The onboarding ' || case o.status
      when 'collecting' then 'still collects: add sources, and start it'
      when 'researching' then 'is being researched: wait until that is over, or discard it'
      when 'research_failed' then 'waits after a failed research: retry the research, or start it again'
      when 'review' then 'is in review: complete it; a change of website or sources leads back to the start'
      else 'is completed, and is not changed any more' end;
    perform app.fail(409, 'request_failed', v_message, app.issue('status', 'not_permitted', format('is %s', o.status)));
  end if;
  return o;
end
$$;

-- Locks and returns the onboarding if the attempt that began with this generation is still in progress. Otherwise null: whoever
-- carries that generation is outdated and writes nothing. Codes: none.
create or replace function app.onboarding_research_lock(p_organization_id uuid, p_generation integer)
  returns app.onboardings
  language plpgsql
as $$
declare
  o app.onboardings;
begin
  select * into o from app.onboardings where organization_id = p_organization_id for no key update;
  if o.status = 'researching' and o.research_generation = p_generation
     and exists (select 1 from app.organizations where id = p_organization_id and deleted_at is null) then
    return o;
  end if;
  return null;
end
$$;

-- Writes a changed onboarding, which the caller has locked: raises the generation and, in status review, computes the review.
create or replace function app.onboarding_write(n app.onboardings)
  returns app.onboardings
  language plpgsql
as $$
begin
  if n.status = 'review' then
    n.review := app.onboarding_review(n);
  elsif n.status <> 'completed' then
    n.review := null;
  end if;
  update app.onboardings
    set status = n.status, generation = generation + 1, setup = n.setup, integrations = n.integrations,
      chat_id = n.chat_id, research_status = n.research_status, research_generation = n.research_generation,
      research_attempts = n.research_attempts, research_started_at = n.research_started_at,
      research_finished_at = n.research_finished_at, research_error = n.research_error,
      research_warnings = n.research_warnings, review = n.review,
      updated_at = greatest(clock_timestamp(), updated_at)
    where organization_id = n.organization_id
    returning * into n;
  return n;
end
$$;

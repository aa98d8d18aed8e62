-- Starts the next attempt at the research, and adds its job. Called by start and retry, with the onboarding locked.
create or replace function app.onboarding_research_queue(o app.onboardings)
  returns app.onboardings
  language plpgsql
as $$
begin
  o.status := 'researching';
  o.research_status := 'queued';
  o.research_generation := o.generation + 1;
  o.research_attempts := o.research_attempts + 1;
  o.research_started_at := null;
  o.research_finished_at := null;
  o.research_error := null;
  o := app.onboarding_write(o);
  perform app.enqueue('onboardings__research',
    jsonb_build_object('organizationId', o.organization_id, 'generation', o.generation),
    format('onboardings__research:%s', o.organization_id));
  return o;
end
$$;

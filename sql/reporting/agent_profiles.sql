create view reporting.agent_profiles with (security_barrier) as
select
  p.organization_id,
  p.id as agent_profile_id,
  p.key,
  p.name,
  p.kind::text as kind,
  p.department::text as department,
  p.status::text as status,
  p.config #>> '{runtime,model}' as model,
  p.config #>> '{runtime,reasoningEffort}' as reasoning_effort,
  (p.config ->> 'maxConcurrentRuns')::integer as max_concurrent_runs,
  p.config #>> '{catalogSource,templateKey}' as template_key,
  p.deleted_at,
  p.created_at,
  p.updated_at
from app.agent_profiles p;

comment on view reporting.agent_profiles is 'Agent profiles, removed ones too: their runs stay.';
comment on column reporting.agent_profiles.organization_id is 'The organization.';
comment on column reporting.agent_profiles.agent_profile_id is 'The profile.';
comment on column reporting.agent_profiles.key is 'Its key, unique among the profiles that are not removed.';
comment on column reporting.agent_profiles.name is 'Name.';
comment on column reporting.agent_profiles.kind is 'operator, chat or department.';
comment on column reporting.agent_profiles.department is 'growth, engineering or support, for department profiles.';
comment on column reporting.agent_profiles.status is 'enabled or disabled.';
comment on column reporting.agent_profiles.model is 'The model that it asks for.';
comment on column reporting.agent_profiles.reasoning_effort is 'The effort that it asks for.';
comment on column reporting.agent_profiles.max_concurrent_runs is 'How many task runs it may have at once.';
comment on column reporting.agent_profiles.template_key is 'The template that it was provisioned from; null: made by hand.';
comment on column reporting.agent_profiles.deleted_at is 'When it was removed.';
comment on column reporting.agent_profiles.created_at is 'When it was made.';
comment on column reporting.agent_profiles.updated_at is 'When it was changed last.';

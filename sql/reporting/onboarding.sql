create view reporting.onboarding with (security_barrier) as
select
  b.organization_id,
  b.status::text as status,
  b.generation,
  (select count(*) from app.context_sources s
    where s.organization_id = b.organization_id and s.origin in ('onboarding', 'research')) as sources,
  (select count(*) from app.context_sources s
    where s.organization_id = b.organization_id and s.origin in ('onboarding', 'research') and s.status = 'failed') as failed_sources,
  (select count(*) from app.research_findings f where f.organization_id = b.organization_id) as findings,
  jsonb_array_length(b.research_warnings) as warnings,
  b.research_status::text as research_status,
  b.research_attempts,
  b.research_error ->> 'code' as research_error_code,
  b.research_started_at,
  b.research_finished_at,
  b.created_at,
  b.updated_at
from app.onboardings b;

comment on view reporting.onboarding is 'Onboardings, without what was found out.';
comment on column reporting.onboarding.organization_id is 'The organization.';
comment on column reporting.onboarding.status is 'collecting, researching, research_failed, review, completed or discarded.';
comment on column reporting.onboarding.generation is 'Raised by every change.';
comment on column reporting.onboarding.sources is 'How many sources were put in or read.';
comment on column reporting.onboarding.failed_sources is 'How many of them could not be used.';
comment on column reporting.onboarding.findings is 'How many claims the research made.';
comment on column reporting.onboarding.warnings is 'How many warnings the research gave.';
comment on column reporting.onboarding.research_status is 'not_started, queued, running, completed or failed.';
comment on column reporting.onboarding.research_attempts is 'How often the research was tried.';
comment on column reporting.onboarding.research_error_code is 'Why the research failed.';
comment on column reporting.onboarding.research_started_at is 'When the last attempt began.';
comment on column reporting.onboarding.research_finished_at is 'When it was over.';
comment on column reporting.onboarding.created_at is 'When the onboarding began.';
comment on column reporting.onboarding.updated_at is 'When it was changed last.';

create view reporting.context_revisions with (security_barrier) as
select
  c.organization_id,
  c.scope::text as scope,
  c.revision,
  c.base_revision,
  p.revision is not null as published,
  p.published_at,
  (select count(*) from app.context_documents d
    where d.organization_id = c.organization_id and d.scope = c.scope and d.revision = c.revision) as documents,
  (select coalesce(sum(d.size_bytes), 0)::bigint from app.context_documents d
    where d.organization_id = c.organization_id and d.scope = c.scope and d.revision = c.revision) as size_bytes,
  c.created_by ->> 'kind' as created_by_kind,
  (c.created_by ->> 'runId')::uuid as created_by_run_id,
  c.created_at
from app.context_revisions c
left join app.context_publications p
  on p.organization_id = c.organization_id and p.scope = c.scope and p.revision = c.revision;

comment on view reporting.context_revisions is 'Revisions of the context, without their documents.';
comment on column reporting.context_revisions.organization_id is 'The organization.';
comment on column reporting.context_revisions.scope is 'organization, growth, engineering or support.';
comment on column reporting.context_revisions.revision is 'Its number in the scope.';
comment on column reporting.context_revisions.base_revision is 'The revision that it was made from; 0: the first one.';
comment on column reporting.context_revisions.published is 'Whether it is the one that runs are given now.';
comment on column reporting.context_revisions.published_at is 'Since when; null for the others.';
comment on column reporting.context_revisions.documents is 'How many documents it has.';
comment on column reporting.context_revisions.size_bytes is 'The size of its documents.';
comment on column reporting.context_revisions.created_by_kind is 'owner, service or agent.';
comment on column reporting.context_revisions.created_by_run_id is 'The run that promoted it.';
comment on column reporting.context_revisions.created_at is 'When it was promoted.';

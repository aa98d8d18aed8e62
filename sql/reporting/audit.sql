create view reporting.audit with (security_barrier) as
select
  a.organization_id,
  a.id as audit_entry_id,
  a.created_at,
  a.actor_kind::text as actor_kind,
  a.actor,
  a.action,
  a.subject_kind,
  a.subject_id,
  a.outcome::text as outcome,
  a.code,
  a.request_id
from app.audit_entries a;

comment on view reporting.audit is
  'The audit log: what people and administrators decided about the organization, without the contents of their decisions.';
comment on column reporting.audit.organization_id is 'The organization.';
comment on column reporting.audit.audit_entry_id is 'The entry.';
comment on column reporting.audit.created_at is 'When the decision was carried out.';
comment on column reporting.audit.actor_kind is
  'owner: a member of the organization; operator: of the platform, through the API; admin: an administrator.';
comment on column reporting.audit.actor is 'Who decided: the subject of an owner, the name of a token.';
comment on column reporting.audit.action is 'What was decided, for example task.cancel.';
comment on column reporting.audit.subject_kind is 'What kind of thing it was decided about, for example task.';
comment on column reporting.audit.subject_id is 'Which one; null where it was never made.';
comment on column reporting.audit.outcome is 'done or refused.';
comment on column reporting.audit.code is 'The error code of a refusal.';
comment on column reporting.audit.request_id is 'The id of the request, as in its response and in the logs.';

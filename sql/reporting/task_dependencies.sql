create view reporting.task_dependencies with (security_barrier) as
select
  d.organization_id,
  d.id as task_dependency_id,
  d.task_id,
  d.depends_on_task_id,
  d.required,
  d.created_at
from app.task_dependencies d;

comment on view reporting.task_dependencies is 'Which task waits for which.';
comment on column reporting.task_dependencies.organization_id is 'The organization.';
comment on column reporting.task_dependencies.task_dependency_id is 'The edge.';
comment on column reporting.task_dependencies.task_id is 'The task that waits.';
comment on column reporting.task_dependencies.depends_on_task_id is 'The task that it waits for.';
comment on column reporting.task_dependencies.required is
  'False: an order that is shown, and holds nothing up.';
comment on column reporting.task_dependencies.created_at is 'When it was made.';

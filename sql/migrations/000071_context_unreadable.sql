-- Documents that the last audit could not read: runs are told of them, and are not held up by them.
set local role runner_owner;

alter table app.context_publications
  -- Paths of the published revision.
  add column unreadable jsonb not null default '[]',
  add constraint context_publications_unreadable_check check (jsonb_typeof(unreadable) = 'array');

reset role;

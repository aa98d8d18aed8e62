-- Pages of the administration's lists that had no index of their order. Without one the page of an organization that has done
-- nothing of late walks the newest rows of all others: 2.8 s for run requests, beside 1,000,000 of other organizations.
set local role runner_owner;

-- Those of chats as well: the list of one organization shows both kinds.
drop index app.runs_created_at_idx;
create index runs_created_at_idx on app.runs (organization_id, created_at, id);
-- None of its columns ever changes, so that heartbeats and claims stay HOT.
create index run_requests_created_at_idx on app.run_requests (organization_id, created_at, id);
create index human_inbox_items_created_at_idx on app.human_inbox_items (organization_id, created_at, id);
create index human_inbox_items_all_created_at_idx on app.human_inbox_items (created_at, id);

reset role;

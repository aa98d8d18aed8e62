-- Filters of the administration's lists that had an index of some of their rows alone: of runs those of tasks, of profiles
-- those that are there. The lists show the others as well.
set local role runner_owner;

-- The kind comes last: owners list the runs of tasks alone, and those of chats, of which there may be very many, are passed over
-- inside of the index.
drop index app.runs_status_idx;
create index runs_status_idx on app.runs (organization_id, status, created_at, id, kind);
drop index app.runs_created_at_idx;
create index runs_created_at_idx on app.runs (organization_id, created_at, id, kind);
drop index app.runs_agent_profile_id_idx;
create index runs_agent_profile_id_idx on app.runs (organization_id, agent_profile_id, created_at, id, kind);
drop index app.agent_profiles_created_at_idx;
create index agent_profiles_created_at_idx on app.agent_profiles (organization_id, created_at desc, id desc);
-- Beside the unique one: a key may have been that of several profiles that are deleted.
create index agent_profiles_all_key_idx on app.agent_profiles (organization_id, key);

reset role;

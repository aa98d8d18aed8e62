-- The schemas, and the functions that every table stands on. Each of the files after this one makes the tables of a noun,
-- complete: columns and rules, indexes, triggers, row security, rights, comments. They are never edited: what is to change
-- of a table is changed by a file with a higher number.
-- Processes compare the database's version with their own before they say that they are ready.
grant select on app.schema_migrations to runner_api, runner_jobs, runner_admin;

-- Views for analysts: logins that read them, and nothing else. The views belong to runner_report, whose policies ask which
-- login has connected (session_user, which `set role` does not change).
create schema reporting;
revoke all on schema reporting from public;
grant usage on schema reporting to runner_report, runner_analyst;
comment on schema reporting is 'Views for analysts: stable, documented, and only of the organizations that a login was given.';

-- Trigram search, and organization_id in the same index. Whoever installed them before may have chosen the schema.
create extension if not exists pg_trgm;
create extension if not exists btree_gin;

set local role runner_owner;

-- The tenant of this transaction, or null: every policy then sees nothing. No SET clause, so that it is inlined.
create function app.current_organization() returns uuid
  language sql stable parallel safe
  return nullif(pg_catalog.current_setting('app.organization_id', true), '')::uuid;
grant execute on function app.current_organization() to public;

-- UUIDv7: 48 bits of milliseconds, then random bits. Plain SQL, for Postgres 15 has no uuidv7().
create function app.uuid_v7() returns uuid
  language sql volatile parallel safe
  as $$
    select encode(
      set_bit(set_bit(
        overlay(uuid_send(gen_random_uuid())
                placing substring(int8send((extract(epoch from clock_timestamp()) * 1000)::bigint) from 3)
                from 1 for 6),
        52, 1), 53, 1), 'hex')::uuid
  $$;
revoke all on function app.uuid_v7() from public;
grant execute on function app.uuid_v7() to runner_scoped, runner_global, runner_jobs, runner_api;

-- Whose a row is must be asked before any condition of the query. A comparison that is leakproof may be asked first, and is
-- where it costs less: EXPLAIN ANALYZE then says by "never executed" whether another tenant's row passed it. What costs next
-- to nothing comes before all others, so the policies of analysts begin with this function.
-- No SET clause, which would take longer than the question; nothing in it is looked up by the search path. PL/pgSQL, because
-- SQL would be inlined and cost what it says.
create function app.report_shows(p_organization_id uuid, p_all boolean, p_organization_ids uuid[]) returns boolean
  language plpgsql immutable parallel safe cost 1e-30
as $$
begin
  return p_all or p_organization_id operator(pg_catalog.=) any (p_organization_ids);
end
$$;
revoke all on function app.report_shows from public;
-- A function in a policy is called with the rights of who reads the view.
grant execute on function app.report_shows to runner_report, runner_analyst;

-- Postgres parses the checks of a table anew for every statement that writes to it: 50 to 100 µs of each of the dozen writes
-- of a run, a seventh of all its processor time. The rules of the busiest tables (tasks, run_requests, runs, run_logs, messages)
-- are one function each, <table>_check, which a connection compiles once. A broken rule is named in the error as if it were
-- a constraint of its own. The functions have no search path, as setting it would take as long as the rest: they are called
-- where it is set. Whoever changes such a function adds the constraint anew, so that what is there is checked.
create function app.rule_refuse(p_table text, p_rule text) returns void
  language plpgsql immutable
  set search_path = pg_catalog, pg_temp
as $$
begin
  raise exception using errcode = 'check_violation', schema = 'app', table = p_table, constraint = p_rule,
    message = format('new row for relation "%s" violates check constraint "%s"', p_table, p_rule);
end
$$;
revoke all on function app.rule_refuse(text, text) from public;
grant execute on function app.rule_refuse(text, text) to runner_scoped, runner_global;

reset role;

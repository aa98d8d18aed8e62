-- Roles, and the two functions that policies and defaults stand on.
-- Roles belong to the cluster, not to the database: another database of it may have made them already,
-- or be making them at this moment.
do $$
declare
  v_role text;
begin
  foreach v_role in array array['runner_owner', 'runner_scoped', 'runner_global', 'runner_report'] loop
    begin
      execute format('create role %I nologin noinherit', v_role);
    exception when duplicate_object or unique_violation then null;
    end;
  end loop;
  foreach v_role in array array['runner_api', 'runner_jobs', 'runner_admin'] loop
    begin
      execute format('create role %I login noinherit', v_role);
    exception when duplicate_object or unique_violation then null;
    end;
  end loop;
end
$$;

-- The migrating login hands tables and functions to these roles, and a process that uses this login becomes
-- runner_api or runner_jobs at connect. A superuser needs no membership, and gets none.
do $$
declare
  v_role text;
begin
  foreach v_role in array array['runner_scoped', 'runner_global', 'runner_report'] loop
    if not pg_has_role('runner_owner', v_role, 'member') then
      begin
        execute format('grant %I to runner_owner', v_role);
      exception when unique_violation then null;
      end;
    end if;
  end loop;
  if not (select rolsuper from pg_roles where rolname = current_user) then
    foreach v_role in array array['runner_owner', 'runner_scoped', 'runner_global', 'runner_report',
                                  'runner_api', 'runner_jobs', 'runner_admin'] loop
      if current_user <> v_role then
        execute format('grant %I to %I', v_role, current_user);
      end if;
    end loop;
  end if;
end
$$;

create schema if not exists app;
revoke all on schema app from public;
grant usage on schema app to runner_owner, runner_scoped, runner_global, runner_report, runner_api, runner_jobs, runner_admin;
grant create on schema app to runner_owner;

-- The tenant of this transaction, or null: every policy then sees nothing. No SET clause, so that it is inlined.
create function app.current_organization() returns uuid
  language sql stable parallel safe
  return nullif(pg_catalog.current_setting('app.organization_id', true), '')::uuid;
alter function app.current_organization() owner to runner_owner;
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
alter function app.uuid_v7() owner to runner_owner;
revoke all on function app.uuid_v7() from public;
grant execute on function app.uuid_v7() to runner_scoped, runner_global, runner_jobs, runner_api;

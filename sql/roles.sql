-- Roles belong to the cluster, not to the database: another database of it may have made them already,
-- or be making them at this moment.
do $$
declare
  v_role text;
begin
  foreach v_role in array array['runner_owner', 'runner_scoped', 'runner_global', 'runner_report',
                                'runner_analyst'] loop
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
-- runner_api or runner_jobs at connect; who hands runner_analyst on to logins is a member too. A superuser needs no membership,
-- and gets none.
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
                                  'runner_api', 'runner_jobs', 'runner_admin', 'runner_analyst'] loop
      if current_user <> v_role then
        execute format('grant %I to %I', v_role, current_user);
      end if;
    end loop;
  end if;
end
$$;

revoke all on schema app from public;
grant usage on schema app to runner_owner, runner_scoped, runner_global, runner_report, runner_api, runner_jobs, runner_admin;
grant create on schema app to runner_owner;

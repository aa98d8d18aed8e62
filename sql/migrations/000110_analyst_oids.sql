-- A name outlives its login: dropped by hand, or by the command in another database of the server, it left its grants here,
-- for the next login of that name. The number of a role is not given again to one of the same name, so it says
-- whose the grants are.
set local role runner_owner;

-- 0: there is no such login any more. It is nobody's number.
alter table app.analysts add column login_oid bigint not null default 0;
alter table app.analyst_grants add column login_oid bigint not null default 0;
update app.analysts set login_oid = coalesce(to_regrole(quote_ident(login))::oid::bigint, 0);
update app.analyst_grants set login_oid = coalesce(to_regrole(quote_ident(login))::oid::bigint, 0);
alter table app.analysts alter column login_oid drop default;
alter table app.analyst_grants alter column login_oid drop default;
comment on column app.analysts.login_oid is 'Number of the login when it was given this; another one of its name is given nothing by it.';
comment on column app.analyst_grants.login_oid is 'Number of the login when it was given this; another one of its name is given nothing by it.';

drop index app.analyst_grants_login_idx;
create index analyst_grants_login_idx on app.analyst_grants (login, login_oid, organization_id);

alter policy report_read on app.analyst_grants using (
  login = session_user::text and login_oid = to_regrole(quote_ident(session_user))::oid::bigint);

-- As before, with the number beside the name.
alter policy report_read on app.organizations using (
  app.report_shows(id,
    (select pg_has_role(session_user, 'runner_report', 'member')
      or exists (select from app.analysts a where a.login = session_user::text
        and a.login_oid = to_regrole(quote_ident(session_user))::oid::bigint and a.all_organizations)),
    array(select g.organization_id from app.analyst_grants g where g.login = session_user::text
      and g.login_oid = to_regrole(quote_ident(session_user))::oid::bigint))
  and deleted_at is null);

do $$
declare
  v_table text;
begin
  for v_table in select c.relname from pg_policy p join pg_class c on c.oid = p.polrelid
      where p.polname = 'report_read' and c.relnamespace = 'app'::regnamespace
        and c.relname not in ('organizations', 'analyst_grants') loop
    execute format($policy$
      alter policy report_read on app.%I using (
        app.report_shows(organization_id,
          (select pg_has_role(session_user, 'runner_report', 'member')
            or exists (select from app.analysts a where a.login = session_user::text
              and a.login_oid = to_regrole(quote_ident(session_user))::oid::bigint and a.all_organizations)),
          array(select g.organization_id from app.analyst_grants g where g.login = session_user::text
            and g.login_oid = to_regrole(quote_ident(session_user))::oid::bigint))
        and organization_id = any (array(select o.id from app.organizations o)))
    $policy$, v_table);
  end loop;
end
$$;

reset role;

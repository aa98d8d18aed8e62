-- Whose a row is must be asked before any condition of the query. A comparison that is leakproof may be asked first, and is where
-- it costs less: EXPLAIN ANALYZE then says by "never executed" whether another tenant's row passed it. What costs next to nothing
-- comes before all others, so the policies begin with this function.
-- No SET clause, which would take longer than the question; nothing in it is looked up by the search path. PL/pgSQL, because SQL
-- would be inlined and cost what it says.
set local role runner_owner;

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

-- The one place that judges. An operator, who may become runner_report, sees all; a deleted organization nobody.
alter policy report_read on app.organizations using (
  app.report_shows(id,
    (select pg_has_role(session_user, 'runner_report', 'member')
      or exists (select from app.analysts a where a.login = session_user::text and a.all_organizations)),
    array(select g.organization_id from app.analyst_grants g where g.login = session_user::text))
  and deleted_at is null);

-- The second condition decides, and is the one that indexes know.
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
            or exists (select from app.analysts a where a.login = session_user::text and a.all_organizations)),
          array(select g.organization_id from app.analyst_grants g where g.login = session_user::text))
        and organization_id = any (array(select o.id from app.organizations o)))
    $policy$, v_table);
  end loop;
end
$$;

reset role;

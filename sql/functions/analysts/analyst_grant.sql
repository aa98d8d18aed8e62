-- Lets an analyst's login read organizations, in addition to those that it can read already; p_all: all of them, including
-- future ones. p_fresh: the login has just been created, so grants to an earlier login of the same name do not count. They do
-- not count either if the login was recreated elsewhere, which its oid tells.
-- Called by operators only (npm run analyst), in the transaction that creates the login. Locks: the analyst's row.
-- Codes: 404 organization_not_found (nothing is granted).
create or replace function app.analyst_grant(p_login text, p_organization_ids uuid[], p_all boolean, p_fresh boolean)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_oid constant bigint := coalesce(to_regrole(quote_ident(p_login))::oid::bigint, 0);
  v_unknown uuid;
begin
  delete from app.analyst_grants where login = p_login and (p_fresh or login_oid <> v_oid);
  delete from app.analysts where login = p_login and (p_fresh or login_oid <> v_oid);
  -- Waits for a concurrent grant to the same login.
  insert into app.analysts (login, login_oid, all_organizations) values (p_login, v_oid, p_all)
    on conflict (login) do update set all_organizations = analysts.all_organizations or excluded.all_organizations;
  select i.id into v_unknown
    from unnest(p_organization_ids) i(id)
    where not exists (select from app.organizations o where o.id = i.id and o.deleted_at is null) limit 1;
  if found then
    perform app.fail(404, 'organization_not_found', format('There is no organization %s', v_unknown));
  end if;
  insert into app.analyst_grants (organization_id, login, login_oid)
    select distinct i.id, p_login, v_oid from unnest(p_organization_ids) i(id)
    on conflict do nothing;
  return jsonb_build_object('login', p_login,
    'all', (select all_organizations from app.analysts where login = p_login),
    'organizationIds', coalesce((select jsonb_agg(organization_id order by organization_id)
      from app.analyst_grants where login = p_login), '[]'));
end
$$;

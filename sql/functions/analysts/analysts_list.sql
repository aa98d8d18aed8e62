-- All analysts' logins with the organizations that they can read, by name: [{login, all, createdAt, gone, organizations: [{id,
-- slug}]}]. `gone`: no login has this name, or another one than the grants were made to. Called by operators only (npm run
-- analyst).
create or replace function app.analysts_list()
  returns jsonb
  language sql stable security definer
as $$
  select coalesce(jsonb_agg(jsonb_build_object('login', a.login, 'all', a.all_organizations, 'createdAt', a.created_at,
      'gone', a.login_oid is distinct from to_regrole(quote_ident(a.login))::oid::bigint,
      'organizations', (select coalesce(jsonb_agg(jsonb_build_object('id', o.id, 'slug', o.slug) order by o.slug), '[]')
        from app.analyst_grants g join app.organizations o on o.id = g.organization_id and o.deleted_at is null
        where g.login = a.login)) order by a.login), '[]')
  from app.analysts a
$$;

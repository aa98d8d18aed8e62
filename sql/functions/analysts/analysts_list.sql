-- Every login of an analyst with the organizations that it reads, by name:
-- [{login, all, createdAt, gone, organizations: [{id, slug}]}]. `gone`: there is no login of its name, or another one than this
-- was given to. Called by operators alone (npm run analyst).
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

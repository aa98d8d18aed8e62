-- One page of organizations, newest first, across tenants: all of them (p_subject null: a platform operator), or those of
-- one member. p_key is the keyset of the row before the page, {createdAt: microseconds, id}; p_backwards reads the page
-- before it instead, nearest row first. At most p_limit rows: the caller asks for one more than it shows.
create or replace function app.organizations_list(
  p_subject text, p_status text, p_created_at_us bigint, p_id uuid, p_backwards boolean, p_limit integer)
  returns setof app.organizations
  language plpgsql stable security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  v_created_at timestamptz := timestamptz 'epoch' + p_created_at_us * interval '1 microsecond';
begin
  if p_backwards then
    return query
      select o.* from app.organizations o
        where o.deleted_at is null and (p_status is null or o.status = p_status)
          and (p_subject is null or exists (
            select 1 from app.organization_members m where m.organization_id = o.id and m.subject = p_subject))
          and (o.created_at, o.id) > (v_created_at, p_id)
        order by o.created_at, o.id limit p_limit;
  elsif p_id is null then
    return query
      select o.* from app.organizations o
        where o.deleted_at is null and (p_status is null or o.status = p_status)
          and (p_subject is null or exists (
            select 1 from app.organization_members m where m.organization_id = o.id and m.subject = p_subject))
        order by o.created_at desc, o.id desc limit p_limit;
  else
    return query
      select o.* from app.organizations o
        where o.deleted_at is null and (p_status is null or o.status = p_status)
          and (p_subject is null or exists (
            select 1 from app.organization_members m where m.organization_id = o.id and m.subject = p_subject))
          and (o.created_at, o.id) < (v_created_at, p_id)
        order by o.created_at desc, o.id desc limit p_limit;
  end if;
end
$$;

alter function app.organizations_list owner to runner_global;
revoke all on function app.organizations_list from public;
grant execute on function app.organizations_list to runner_api;

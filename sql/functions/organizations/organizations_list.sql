-- One page of organizations, newest first, across tenants: all of them (p_subject null: a platform operator), or those of one
-- member. (p_created_at_us, p_id) is the key after which the page begins (at which, with p_inclusive), in microseconds since
-- 1970; p_backward reads the page before it, nearest row first. Returns at most p_limit rows; the caller asks for one more than
-- it shows.
create or replace function app.organizations_list(p_subject text, p_status text, p_created_at_us bigint, p_id uuid,
  p_inclusive boolean, p_backward boolean, p_limit integer)
  returns setof app.organizations
  language plpgsql stable security definer
as $$
begin
  -- Built from constant parts, so that each combination has its own plan: a member's few organizations come from the index of
  -- members, an operator's page from the index of the order.
  return query execute
    'select o.* from app.organizations o where o.deleted_at is null'
      || case when p_subject is null then '' else
           ' and o.id in (select m.organization_id from app.organization_members m where m.subject = $1)' end
      || case when p_status is null then '' else ' and o.status = $2' end
      || case when p_id is null then '' else
           format(' and (o.created_at, o.id) %s ($3, $4) and ($5 or o.id <> $4)',
             case when p_backward then '>=' else '<=' end) end
      || case when p_backward then ' order by o.created_at, o.id' else ' order by o.created_at desc, o.id desc' end
      || ' limit $6'
    using p_subject, p_status, timestamptz 'epoch' + p_created_at_us * interval '1 microsecond', p_id, p_inclusive, p_limit;
end
$$;

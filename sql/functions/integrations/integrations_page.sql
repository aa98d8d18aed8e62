-- A page of an organization's integrations by key: at most p_limit, after p_key (null: from the first), or before it and from the last
-- (p_backward); p_inclusive: with p_key itself. Each bound is one that the index of keys begins at, however many come before.
create or replace function app.integrations_page(
  p_organization_id uuid, p_key text, p_inclusive boolean, p_backward boolean, p_limit integer)
  returns setof app.integrations
  language plpgsql stable
as $$
begin
  if not p_backward then
    return query select n.* from app.integrations n
      where n.organization_id = p_organization_id and n.key >= coalesce(p_key, '') and (p_inclusive or n.key <> coalesce(p_key, ''))
      order by n.key limit p_limit;
  elsif p_key is null then
    return query select n.* from app.integrations n
      where n.organization_id = p_organization_id
      order by n.key desc limit p_limit;
  else
    return query select n.* from app.integrations n
      where n.organization_id = p_organization_id and n.key <= p_key and (p_inclusive or n.key <> p_key)
      order by n.key desc limit p_limit;
  end if;
end
$$;

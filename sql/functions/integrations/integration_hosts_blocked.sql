-- Whether an organization blocks the domain of one of the hosts that a provider is reached at. p_hosts: lower-case names.
create or replace function app.integration_hosts_blocked(p_organization_id uuid, p_hosts jsonb)
  returns boolean
  language sql stable
as $$
  select exists (
    select from app.organizations o
      cross join lateral jsonb_array_elements_text(coalesce(o.constraints -> 'blockedDomains', '[]')) b
      cross join lateral (select rtrim(lower(b.value), '.') as name) d
      cross join lateral jsonb_array_elements_text(coalesce(p_hosts, '[]')) h
      where o.id = p_organization_id and (h.value = d.name or right(h.value, length(d.name) + 1) = '.' || d.name))
$$;

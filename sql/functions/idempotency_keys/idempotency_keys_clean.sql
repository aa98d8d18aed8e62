-- Deletes keys older than 24 hours: of each organization the oldest p_rows, of at most p_organizations that follow p_after
-- (null: from the first one). Keys that are in use stay for the next time. Returns {removed, after}, with the organization
-- after which the next call goes on, or null after the last one.
create or replace function app.idempotency_keys_clean(p_organizations integer, p_rows integer, p_after uuid default null)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_before constant timestamptz := now() - interval '24 hours';
  v_organization_ids uuid[];
  v_removed integer;
begin
  -- One step of the index for each organization, however many keys it has. There need not be an organization.
  with recursive d as (
    (select k.organization_id, k.created_at from app.idempotency_keys k
       where k.organization_id > coalesce(p_after, '00000000-0000-0000-0000-000000000000')
       order by k.organization_id, k.created_at limit 1)
    union all
    select n.* from d cross join lateral (
      select k.organization_id, k.created_at from app.idempotency_keys k where k.organization_id > d.organization_id
        order by k.organization_id, k.created_at limit 1) n
  )
  select coalesce(array_agg(o.organization_id), '{}') into v_organization_ids
    from (select d.organization_id from d where d.created_at < v_before limit p_organizations) o;
  delete from app.idempotency_keys where ctid = any (array(
    select r.ctid from unnest(v_organization_ids) o(id)
      cross join lateral (
        select k.ctid from app.idempotency_keys k where k.organization_id = o.id and k.created_at < v_before
          order by k.created_at limit p_rows for update skip locked) r));
  get diagnostics v_removed = row_count;
  return jsonb_build_object('removed', v_removed, 'after',
    case when cardinality(v_organization_ids) = p_organizations then v_organization_ids[p_organizations] end);
end
$$;

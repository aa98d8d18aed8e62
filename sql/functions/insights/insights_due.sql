-- Connectors of which something is due, in turns over the organizations (see due_in_turns): the oldest of each of them first, then the
-- next. Reads only; insight_unit_claim decides again.
create or replace function app.insights_due(p_organizations integer, p_rows integer, p_after uuid default null)
  returns table (organization_id uuid, id uuid)
  language sql stable security definer
as $$
  select d.organization_id, d.id
    from app.due_in_turns('insight_connectors', 'due_at', 'r.due_at is not null', clock_timestamp(), p_after, p_organizations, p_rows,
      'integration_id') d
    order by row_number() over (partition by d.organization_id order by d.due_at, d.id), d.due_at, d.id
$$;

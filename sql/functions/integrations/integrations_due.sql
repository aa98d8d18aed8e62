-- What of integrations is due, in turns over the organizations (see due_in_turns). p_kind: check, the health of connections; refresh,
-- tokens that die unused; repair, mappings that wait for a health report. The oldest of each organization come first, then the
-- next. Reads only; the transitions decide again.
create or replace function app.integrations_due(p_kind text, p_organizations integer, p_rows integer, p_after uuid default null)
  returns table (organization_id uuid, id uuid)
  language plpgsql stable security definer
as $$
begin
  if p_kind = 'repair' then
    return query select d.organization_id, d.id
      from app.due_in_turns('integration_context_repairs', 'created_at', $c$r.status = 'queued'$c$, clock_timestamp(),
        p_after, p_organizations, p_rows) d
      order by row_number() over (partition by d.organization_id order by d.due_at, d.id), d.due_at, d.id;
  elsif p_kind in ('check', 'refresh') then
    return query select d.organization_id, d.id
      from app.due_in_turns('integration_connections', p_kind || '_due_at', 'r.reauthorization_reason is null',
        clock_timestamp(), p_after, p_organizations, p_rows, 'integration_id') d
      order by row_number() over (partition by d.organization_id order by d.due_at, d.id), d.due_at, d.id;
  else
    raise exception 'unknown kind %', p_kind;
  end if;
end
$$;

-- What of actions is due, in turns over the organizations (see due_in_turns). p_kind: execute, approved ones and those whose outcome
-- has to be looked up; expire, those that nobody decided about in time. The oldest of each organization come first, then the next.
-- Reads only; the transitions decide again.
create or replace function app.actions_due(p_kind text, p_organizations integer, p_rows integer, p_after uuid default null)
  returns table (organization_id uuid, id uuid)
  language plpgsql stable security definer
as $$
begin
  if p_kind not in ('execute', 'expire') then
    raise exception 'unknown kind %', p_kind;
  end if;
  return query select d.organization_id, d.id
    from app.due_in_turns('actions', case p_kind when 'execute' then 'due_at' else 'expires_at' end,
      case p_kind when 'execute' then 'r.due_at is not null' else $c$r.status = 'awaiting_approval'$c$ end, clock_timestamp(),
      p_after, p_organizations, p_rows) d
    order by row_number() over (partition by d.organization_id order by d.due_at, d.id), d.due_at, d.id;
end
$$;

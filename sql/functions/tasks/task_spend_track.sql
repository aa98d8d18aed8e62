-- Starts counting what a hierarchy spends, because one of its tasks has got a spend limit, and sums up what its runs have used
-- so far. Counting never stops again. Called by a trigger on the spec. The caller has locked the root.
create or replace function app.task_spend_track(p_organization_id uuid, p_root_task_id uuid)
  returns void
  language plpgsql
as $$
begin
  update app.tasks set spend_limited = true
    where organization_id = p_organization_id and id = p_root_task_id and not spend_limited;
  if not found then
    return;
  end if;
  with recursive tree as (
    select t.id, t.id as above from app.tasks t
      where t.organization_id = p_organization_id and t.root_task_id = p_root_task_id
    union all
    select tree.id, t.parent_id from tree join app.tasks t on t.organization_id = p_organization_id and t.id = tree.above
      where t.parent_id is not null
  ), spent as (
    select tree.above as id, sum(u.cost_minor_units) as cost, sum(u.input_tokens + u.output_tokens) as tokens,
        count(*) filter (where u.cost_known) as known
      from tree join app.runs u on u.organization_id = p_organization_id and u.task_id = tree.id
      group by tree.above
  )
  update app.tasks t
    set spent_cost_minor_units = spent.cost, spent_tokens = spent.tokens, cost_known_run_count = spent.known
    from spent
    where t.organization_id = p_organization_id and t.id = spent.id;
  -- Runs that have not reported: active ones, and cancelled ones that still may report.
  update app.runs u set spend_limited = true
    from app.tasks t
    where t.organization_id = p_organization_id and t.root_task_id = p_root_task_id
      and u.organization_id = t.organization_id and u.task_id = t.id and u.finish_call is null;
end
$$;

-- What prevents the plan of initiative t from being applied now: null, or {status, issues} with every issue found (400: it
-- names something that does not exist; 409: states or limits do not allow it). p_operations: as plan_resolve returns them.
-- Called when a plan is staged, and again with the roots locked when it is applied.
-- work_mem: Postgres sizes the hash table of `reached` for the rows that it expects, which are thousands of times as many as
-- there are, and clearing 16 MB takes ten times as long as all else here.
create or replace function app.plan_issues(p_organization_id uuid, t app.tasks, p_operations jsonb)
  returns jsonb
  language plpgsql stable
  set work_mem = '1MB'
as $$
declare
  v_limits jsonb;
  v_issues jsonb;
  v_creates integer;
begin
  select jsonb_agg(jsonb_build_object('path', 'outcome.operations.' || i.at, 'code', i.code, 'message', i.message) order by i.place, i.at)
    into v_issues
    from (
      with ops as (
        select o.op, o.place - 1 as place from jsonb_array_elements(p_operations) with ordinality o(op, place)
      ), made as (
        select o.place, o.op, o.op ->> 'key' as key from ops o where o.op ->> 'op' = 'create_task'
      )
      select m.place, m.place || '.key' as at, 'duplicate_key' as code, 'an earlier operation has this key' as message
        from made m where exists (select 1 from made e where e.key = m.key and e.place < m.place)
      union all
      select m.place, m.place || '.parentKey', 'unknown_key', 'no operation makes an initiative with this key'
        from made m where m.op ->> 'parentKey' is not null
          and not exists (select 1 from made e where e.key = m.op ->> 'parentKey' and e.op ->> 'kind' = 'initiative')
      union all
      select m.place, m.place || '.ownerProfileKey', 'unknown_profile', 'names no agent profile of this organization'
        from made m where m.op ->> 'ownerProfileKey' is not null and not exists (
          select 1 from app.agent_profiles p where p.organization_id = p_organization_id and p.deleted_at is null
            and p.key = m.op ->> 'ownerProfileKey')
      union all
      select o.place, o.place || '.spec.verifierProfileKey', 'unknown_profile', 'names no agent profile of this organization'
        from ops o where o.op #>> '{spec,verifierProfileKey}' is not null and not exists (
          select 1 from app.agent_profiles p where p.organization_id = p_organization_id and p.deleted_at is null
            and p.key = o.op #>> '{spec,verifierProfileKey}')
      union all
      select o.place, o.place || '.task', 'unknown_task', 'names no task of this organization'
        from ops o where o.op ->> 'op' <> 'create_task' and o.op ->> 'node' is null
      union all
      select o.place, o.place || case o.op ->> 'op' when 'create_task' then '.dependsOn.' || (d.place - 1) else '.dependsOn' end,
          'unknown_task', 'names neither a task of this organization nor a key of this plan'
        from ops o cross join jsonb_array_elements(o.op -> 'on') with ordinality d(node, place)
        where jsonb_typeof(d.node) = 'null'
    ) i;
  if v_issues is not null then
    return jsonb_build_object('status', 400, 'issues', v_issues);
  end if;

  select config -> 'limits' into v_limits from app.organizations where id = p_organization_id;
  select count(*) into v_creates from jsonb_array_elements(p_operations) o where o ->> 'op' = 'create_task';
  select jsonb_agg(jsonb_build_object('path', 'outcome.operations' || i.at, 'code', i.code, 'message', i.message) order by i.place, i.at)
    into v_issues
    from (
      with recursive ops as (
        select o.op, o.place - 1 as place, o.op ->> 'op' as verb, o.op ->> 'node' as node
          from jsonb_array_elements(p_operations) with ordinality o(op, place)
      ), made as (
        select o.place, o.op, o.node, o.op ->> 'key' as key, 'key:' || (o.op ->> 'parentKey') as parent
          from ops o where o.verb = 'create_task'
      ), placed as (
        select m.node, m.place, t.depth + 1 as depth from made m where m.parent is null
        union all
        select m.node, m.place, p.depth + 1 from made m join placed p on p.node = m.parent
      ), edges as materialized (
        -- a waits for b; an initiative waits for its children.
        select o.node as a, d.node as b, true as wanted
          from ops o cross join jsonb_array_elements_text(o.op -> 'on') d(node)
        union all
        select coalesce(m.parent, t.id::text), m.node, false from made m
      ), reached as (
        select e.a as start, e.b as node from edges e where e.wanted
        union
        select r.start, n.node from reached r cross join lateral (
          select e.b as node from edges e where e.a = r.node
          union all
          select d.depends_on_task_id::text from app.task_dependencies d
            where r.node not like 'key:%' and d.organization_id = p_organization_id
              and d.task_id = case when r.node not like 'key:%' then r.node::uuid end
          union all
          select c.id::text from app.tasks c
            where r.node not like 'key:%' and c.organization_id = p_organization_id
              and c.parent_id = case when r.node not like 'key:%' then r.node::uuid end
        ) n
      ), about as (
        select o.place, o.verb, o.op, k.id, k.kind, k.status, k.spec, k.owner_agent_profile_id,
            k.id <> t.id and app.task_is_within(p_organization_id, k.id, t.id) as below
          from ops o join app.tasks k on k.organization_id = p_organization_id
            and k.id = case when o.node not like 'key:%' then o.node::uuid end
          where o.verb <> 'create_task'
      ), specs as (
        select m.place, coalesce(m.op -> 'spec', '{}') as spec, coalesce((select p.id from app.agent_profiles p
            where p.organization_id = p_organization_id and p.deleted_at is null and p.key = m.op ->> 'ownerProfileKey'),
            t.owner_agent_profile_id) as executor
          from made m
        union all
        select a.place, app.merge_patch(a.spec, a.op -> 'spec'), a.owner_agent_profile_id
          from about a where a.verb = 'update_task' and a.op ? 'spec'
      )
      select -1 as place, '' as at, 'max_plan_operations' as code,
          format('a plan has at most %s operations', v_limits ->> 'maxPlanOperations') as message
        where jsonb_array_length(p_operations) > (v_limits ->> 'maxPlanOperations')::integer
      union all
      select -1, '', 'max_initiative_descendants',
          format('the hierarchy holds at most %s tasks below its root', v_limits ->> 'maxInitiativeDescendants')
        where v_creates > 0 and v_creates - 1 + (select count(*) from app.tasks k where k.organization_id = p_organization_id
          and k.root_task_id = t.root_task_id) > (v_limits ->> 'maxInitiativeDescendants')::integer
      union all
      select -1, '', 'no_children', 'the initiative has no tasks below it, and the plan makes none'
        where v_creates = 0 and not exists (select 1 from app.tasks k
          where k.organization_id = p_organization_id and k.parent_id = t.id)
      union all
      select m.place, '.' || m.place || '.parentKey', 'cycle', 'the initiatives are below each other'
        from made m where not exists (select 1 from placed p where p.node = m.node)
      union all
      select p.place, '.' || p.place, 'max_task_depth',
          format('deeper than maxTaskDepth (%s)', v_limits ->> 'maxTaskDepth')
        from placed p where p.depth > (v_limits ->> 'maxTaskDepth')::integer
      union all
      select p.place, '.' || p.place || '.kind', 'max_task_depth',
          format('an initiative at maxTaskDepth (%s) could have no tasks below it', v_limits ->> 'maxTaskDepth')
        from placed p join made m on m.node = p.node
        where m.op ->> 'kind' = 'initiative' and p.depth = (v_limits ->> 'maxTaskDepth')::integer
      union all
      select o.place, '.' || o.place || '.dependsOn', 'cycle', 'the prerequisite waits for this task itself'
        from ops o where o.op -> 'on' <> '[]' and exists (
          select 1 from reached r where r.start = o.node and r.node = o.node)
      union all
      select o.place, '.' || o.place || '.dependsOn', 'edge_differs', 'the edge is there, and is not required'
        from ops o join app.task_dependencies d on d.organization_id = p_organization_id and not d.required
          and d.task_id = case when o.node not like 'key:%' then o.node::uuid end
          and d.depends_on_task_id = case when o.op #>> '{on,0}' not like 'key:%' then (o.op #>> '{on,0}')::uuid end
        where o.verb = 'add_dependency'
      union all
      select a.place, '.' || a.place || '.task', 'not_below', 'is no task below the initiative'
        from about a where not a.below
      union all
      select a.place, '.' || a.place || '.task', 'not_open', format('the task is %s', a.status)
        from about a where a.below and (a.status in ('completed', 'failed', 'cancelled')
          or a.status = 'running' and (a.verb = 'add_dependency' or a.op ? 'spec'))
      union all
      select s.place, '.' || s.place || '.spec.verification', 'no_verifier', 'nobody but its executor could verify the task'
        from specs s where s.spec ->> 'verification' = 'agent'
          and app.task_verifier(p_organization_id, s.spec, s.executor, false) is null
    ) i;
  return case when v_issues is not null then jsonb_build_object('status', 409, 'issues', v_issues) end;
end
$$;

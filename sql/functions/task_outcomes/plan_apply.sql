-- Applies a plan in which plan_issues has found nothing: tasks first, then edges, changes and cancels. The initiative itself is
-- still running, so that it is not closed halfway; the caller changes it afterwards, and has locked the roots of everything
-- that the plan names.
-- Returns the tasks made: [{key, taskId, identifier}].
-- Locks: (roots) → profiles (shared) → task number → edges → run requests → (commit) dispatch.
create or replace function app.plan_apply(p_organization_id uuid, t app.tasks, p_run_id uuid, p_operations jsonb)
  returns jsonb
  language plpgsql
as $$
declare
  v_owner constant jsonb := '{"kind": "owner"}';
  v_ids jsonb;
  v_made jsonb;
  v_op jsonb;
  v_on text;
  v_node uuid;
  v_task app.tasks;
  v_id uuid;
begin
  perform 1 from app.agent_profiles p
    where p.organization_id = p_organization_id and p.deleted_at is null
      and p.key in (select o ->> 'ownerProfileKey' from jsonb_array_elements(p_operations) o)
    order by p.id for share;
  select coalesce(jsonb_object_agg('key:' || (o ->> 'key'), app.uuid_v7()), '{}') into v_ids
    from jsonb_array_elements(p_operations) o where o ->> 'op' = 'create_task';

  if v_ids <> '{}' then
    with recursive made as (
      select o.op, o.place, o.op ->> 'node' as node, 'key:' || (o.op ->> 'parentKey') as parent, o.op ->> 'kind' as kind
        from jsonb_array_elements(p_operations) with ordinality o(op, place) where o.op ->> 'op' = 'create_task'
    ), placed as (
      select m.node, t.depth + 1 as depth from made m where m.parent is null
      union all
      select m.node, p.depth + 1 from made m join placed p on p.node = m.parent
    ), counted as (
      update app.task_identifiers i set last_number = i.last_number + n.made
        from (select case kind when 'initiative' then 'I' else 'T' end as scope, count(*)::integer as made
                from made group by 1) n
        where i.organization_id = p_organization_id and i.scope = n.scope
        returning i.scope, i.last_number - n.made as before
    ), inserted as (
      insert into app.tasks (organization_id, id, identifier_scope, identifier_number, parent_id, root_task_id, depth,
          owner_agent_profile_id, source_chat_id, source_message_id, kind, status, phase, title, priority,
          created_by_run_id, spec, dedupe_key)
        select p_organization_id, (v_ids ->> m.node)::uuid, c.scope,
            c.before + row_number() over (partition by c.scope order by m.place),
            coalesce((v_ids ->> m.parent)::uuid, t.id), t.root_task_id, p.depth,
            coalesce(f.id, t.owner_agent_profile_id), t.source_chat_id, t.source_message_id, m.kind, 'pending',
            case when m.kind = 'initiative' and not exists (select 1 from made b where b.parent = m.node) then 'plan'
              else 'execute' end,
            m.op ->> 'title', coalesce((m.op ->> 'priority')::integer, 0), p_run_id,
            app.merge_patch(app.task_spec_defaults(m.kind), m.op -> 'spec'), v_ids ->> m.node
          from made m
          join placed p on p.node = m.node
          join counted c on c.scope = case m.kind when 'initiative' then 'I' else 'T' end
          left join app.agent_profiles f on f.organization_id = p_organization_id and f.deleted_at is null
            and f.key = m.op ->> 'ownerProfileKey'
        returning id, identifier_scope, identifier_number)
    select jsonb_agg(jsonb_build_object('key', m.op ->> 'key', 'taskId', n.id,
        'identifier', n.identifier_scope || '-' || n.identifier_number) order by m.place)
      into v_made
      from made m join inserted n on n.id = (v_ids ->> m.node)::uuid;
    update app.tasks set graph_revision = graph_revision + 1
      where organization_id = p_organization_id and id = t.root_task_id;
  end if;

  for v_op in select o from jsonb_array_elements(p_operations) with ordinality e(o, place) order by place loop
    v_node := coalesce(v_ids ->> (v_op ->> 'node'), v_op ->> 'node')::uuid;
    for v_on in select jsonb_array_elements_text(v_op -> 'on') loop
      perform app.task_dependency_add(p_organization_id, v_node, coalesce(v_ids ->> v_on, v_on)::uuid, true);
    end loop;
    if v_op ->> 'op' = 'add_dependency' then
      perform app.task_settle(p_organization_id, v_node);
    end if;
  end loop;
  for v_op in select o from jsonb_array_elements(p_operations) with ordinality e(o, place)
    where o ->> 'op' = 'update_task' order by place
  loop
    select * into v_task from app.tasks where organization_id = p_organization_id and id = (v_op ->> 'node')::uuid;
    perform app.task_update(p_organization_id, v_task.id::text, v_task.version,
      v_op - array['op', 'task', 'node', 'on'], v_owner);
  end loop;
  for v_op in select o from jsonb_array_elements(p_operations) with ordinality e(o, place)
    where o ->> 'op' = 'cancel_task' order by place
  loop
    select * into v_task from app.tasks where organization_id = p_organization_id and id = (v_op ->> 'node')::uuid;
    -- It may have ended already, with another task that this plan cancels.
    if v_task.phase <> 'closed' then
      perform app.task_cancel(p_organization_id, v_task.id::text, v_owner);
    end if;
  end loop;
  for v_id in select (e.value #>> '{}')::uuid from jsonb_each(v_ids) e loop
    perform app.task_settle(p_organization_id, v_id);
  end loop;
  return coalesce(v_made, '[]');
end
$$;

-- The direct children of a task as a planner or verifier needs them, with state and result, in the order in which they were
-- created (of one plan: tasks before initiatives).
create or replace function app.task_children(p_organization_id uuid, p_task_id uuid)
  returns jsonb
  language sql stable
as $$
  select coalesce(jsonb_agg(jsonb_strip_nulls(jsonb_build_object('id', c.id,
      'identifier', c.identifier_scope || '-' || c.identifier_number, 'kind', c.kind, 'title', c.title,
      'status', c.status, 'phase', c.phase, 'ownerAgentProfileId', c.owner_agent_profile_id,
      'summary', left(c.result ->> 'summary', 2000), 'artifacts', c.result -> 'artifacts',
      'error', c.error)) order by c.created_at, c.kind desc, c.identifier_number), '[]')
    from app.tasks c where c.organization_id = p_organization_id and c.parent_id = p_task_id
$$;

-- Creates the next revision of a scope and publishes it (docs/interface.md 4.12.2). Documents of the base that are not named
-- stay.
-- p_documents: [{kind, path, storageKey, sizeBytes, sha256, sourceIds?} | {path, removed: true}], with their files already
-- stored; null: only checks whether the caller may promote from this base. p_base_revision 0 or null: nothing is published yet.
-- p_task_ref: the task on whose behalf; a run of a department promotes for its own task, into the scope of its department.
-- Agents cannot promote before the onboarding is completed; its completion calls this as the owner.
-- Returns {revision: {…context_revisions, documents: [{kind, path, size_bytes, sha256, source_ids}]}}.
-- Locks: root → run request → publication → sources (shared).
-- Codes: 400 validation_failed (too_many_documents, too_large, below_a_document, unknown_document, unknown_source,
-- cannot_ground), 401 agent_unauthorized, 404 organization_not_found | task_not_found, 409 state_conflict (stale).
create or replace function app.context_promote(
  p_organization_id uuid, p_scope text, p_base_revision integer, p_documents jsonb, p_actor jsonb,
  p_task_ref text default null)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_task_id uuid;
  v_actor jsonb;
  v_revision integer;
  v_name text;
  v_status text;
  v_documents integer;
  v_bytes bigint;
  r app.context_revisions;
begin
  if p_task_ref is not null then
    v_task_id := app.task_find(p_organization_id, p_task_ref);
    perform app.task_roots_lock(p_organization_id, array[v_task_id], false);
  end if;
  v_actor := app.actor_require(p_organization_id, p_actor, v_task_id);
  if p_task_ref is not null and not exists (
      select 1 from app.tasks where organization_id = p_organization_id and id = v_task_id) then
    perform app.fail(404, 'task_not_found', 'Task not found');
  end if;
  if v_actor ->> 'profileKind' = 'department' and not exists (
      select 1 from app.agent_profiles
      where organization_id = p_organization_id and id = (v_actor ->> 'agentProfileId')::uuid
        and department = p_scope) then
    perform app.fail(401, 'agent_unauthorized', 'A department promotes into its own scope alone');
  end if;
  if p_actor ->> 'kind' <> 'owner' and exists (
      select 1 from app.organizations where id = p_organization_id and status = 'onboarding') then
    perform app.fail(409, 'state_conflict', 'The onboarding publishes the first revision: complete it before');
  end if;

  if p_documents is not null then
    insert into app.context_publications (organization_id, scope) values (p_organization_id, p_scope)
      on conflict on constraint context_publications_pkey do nothing;
  end if;
  select revision into v_revision from app.context_publications
    where organization_id = p_organization_id and scope = p_scope for no key update;
  v_revision := coalesce(v_revision, 0);
  if v_revision <> coalesce(p_base_revision, 0) then
    perform app.fail(409, 'state_conflict', format('Revision %s is published: read it and promote from it', v_revision),
      app.issue('baseRevision', 'stale', format('the published revision is %s', v_revision)));
  end if;
  if p_documents is null then
    return '{}';
  end if;

  select d.path into v_name from jsonb_to_recordset(p_documents) d(path text, removed boolean)
    where d.removed and not exists (
      select 1 from app.context_documents b
      where b.organization_id = p_organization_id and b.scope = p_scope and b.revision = v_revision and b.path = d.path)
    limit 1;
  if found then
    perform app.fail(400, 'validation_failed', 'There is no such document to remove',
      app.issue('removePaths', 'unknown_document', format('%s is none of revision %s', v_name, v_revision)));
  end if;
  perform 1 from app.context_sources
    where organization_id = p_organization_id and id = any (array(
      select i.id::uuid from jsonb_array_elements(p_documents) d
      cross join lateral jsonb_array_elements_text(coalesce(d -> 'sourceIds', '[]')) i(id)))
    order by id for share;
  select d ->> 'path', s.status into v_name, v_status
    from jsonb_array_elements(p_documents) d
    cross join lateral jsonb_array_elements_text(coalesce(d -> 'sourceIds', '[]')) i(id)
    left join app.context_sources s on s.organization_id = p_organization_id and s.id = i.id::uuid
    where s.status is distinct from 'ingested' limit 1;
  if found and v_status is null then
    perform app.fail(400, 'validation_failed', 'Evidence names a source that is not there',
      app.issue('documents', 'unknown_source', format('%s cites a source that the organization does not have', v_name)));
  elsif found then
    perform app.fail(400, 'validation_failed', 'Only ingested sources ground evidence',
      app.issue('documents', 'cannot_ground', format('%s cites a source that is %s', v_name, v_status)));
  end if;

  insert into app.context_revisions (organization_id, scope, revision, base_revision, created_by, created_at)
    values (p_organization_id, p_scope, v_revision + 1, v_revision,
      jsonb_strip_nulls(jsonb_build_object(
        'kind', case p_actor ->> 'kind' when 'capability' then 'agent' else p_actor ->> 'kind' end,
        'runId', v_actor ->> 'runId', 'agentProfileId', v_actor ->> 'agentProfileId',
        'chatId', v_actor ->> 'chatId', 'taskId', coalesce(v_task_id::text, v_actor ->> 'taskId'))),
      clock_timestamp())
    returning * into r;
  insert into app.context_documents
      (organization_id, scope, revision, path, kind, storage_key, size_bytes, sha256, source_ids)
    select p_organization_id, p_scope, r.revision, d.path, d.kind, d."storageKey", d."sizeBytes", d.sha256,
        coalesce(d."sourceIds", '[]')
      from jsonb_to_recordset(p_documents)
        d(path text, kind text, "storageKey" text, "sizeBytes" bigint, sha256 text, "sourceIds" jsonb, removed boolean)
      where d.removed is not true
    union all
    select b.organization_id, b.scope, r.revision, b.path, b.kind, b.storage_key, b.size_bytes, b.sha256, b.source_ids
      from app.context_documents b
      where b.organization_id = p_organization_id and b.scope = p_scope and b.revision = v_revision
        and not exists (select 1 from jsonb_array_elements(p_documents) d where d ->> 'path' = b.path);
  select count(*), coalesce(sum(size_bytes), 0) into v_documents, v_bytes from app.context_documents
    where organization_id = p_organization_id and scope = p_scope and revision = r.revision;
  if v_documents > 100 then
    perform app.fail(400, 'validation_failed', 'A revision holds at most 100 documents',
      app.issue('documents', 'too_many_documents', format('there would be %s', v_documents)));
  end if;
  select b.path into v_name from app.context_documents a, app.context_documents b
    where a.organization_id = p_organization_id and a.scope = p_scope and a.revision = r.revision
      and b.organization_id = p_organization_id and b.scope = p_scope and b.revision = r.revision
      and starts_with(b.path, a.path || '/') limit 1;
  if found then
    perform app.fail(400, 'validation_failed', 'A document cannot lie below another one',
      app.issue('documents', 'below_a_document', format('%s would', v_name)));
  end if;
  if v_bytes > 8388608 then
    perform app.fail(400, 'validation_failed', 'The documents of a revision have at most 8 MiB',
      app.issue('documents', 'too_large', format('they would have %s bytes', v_bytes)));
  end if;
  update app.context_publications p
    set revision = r.revision, published_at = r.created_at, unreadable = (
      select coalesce(jsonb_agg(u.path), '[]') from jsonb_array_elements_text(p.unreadable) u(path)
        where not exists (select 1 from jsonb_array_elements(p_documents) d where d ->> 'path' = u.path))
    where organization_id = p_organization_id and scope = p_scope;
  perform app.enqueue('context__assess_health',
    jsonb_build_object('organizationId', p_organization_id, 'assessment', 'full_audit'),
    format('context__assess_health:%s', p_organization_id));
  return jsonb_build_object('revision', to_jsonb(r) || jsonb_build_object('documents', (
    select coalesce(jsonb_agg(to_jsonb(d) - 'storage_key' order by d.path), '[]') from app.context_documents d
      where d.organization_id = p_organization_id and d.scope = p_scope and d.revision = r.revision)));
end
$$;

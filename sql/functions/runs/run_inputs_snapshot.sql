-- Stores the inputs of a run at its start; later changes of the task apply to later runs. An input that is missing (an upload,
-- artifact, attachment or document) is listed without bytes. Of two inputs with the same path the first wins.
-- A context file is the published document of the owner's department, or else of the organization. If the owner belongs to no
-- department, all scopes count, the organization's first.
-- Locks: attachments (key share, skip locked). chat_purge deletes attachments before it looks for inputs that name their bytes,
-- so it sees the inputs of every start that found an attachment, and no start waits for it.
create or replace function app.run_inputs_snapshot(p_organization_id uuid, p_run_id uuid, t app.tasks)
  returns void
  language sql
as $$
  insert into app.run_inputs (organization_id, run_id, path, role, media_type, size, sha256, content, storage_key,
      chat_id)
    select p_organization_id, p_run_id, i.item ->> 'path', 'input',
        coalesce(u.media_type, o.media_type, a.media_type,
          case i.item ->> 'kind' when 'inline' then coalesce(i.item ->> 'mediaType', 'text/plain')
            when 'context_file' then 'application/json' end,
          'application/octet-stream'),
        coalesce(u.size, o.size, a.size_bytes, d.size_bytes, octet_length(i.item ->> 'text'), 0),
        coalesce(u.sha256, o.sha256, a.sha256, d.sha256,
          encode(sha256(convert_to(i.item ->> 'text', 'UTF8')), 'hex')),
        i.item ->> 'text', coalesce(u.storage_key, o.storage_key, a.storage_key, d.storage_key), a.chat_id
      from jsonb_array_elements(t.spec -> 'inputs') with ordinality i(item, place)
      left join app.task_inputs u on i.item ->> 'kind' = 'upload' and u.organization_id = p_organization_id
        and u.task_id = t.id and u.path = i.item ->> 'path'
      left join app.runs s on i.item ->> 'kind' = 'artifact' and s.organization_id = p_organization_id
        and s.id = (i.item ->> 'runId')::uuid
      left join app.run_outputs o on o.organization_id = p_organization_id and o.run_id = s.id
        and o.path = s.output #>> array['result', 'artifacts', i.item ->> 'artifactIndex', 'path']
      left join lateral (
        select f.chat_id, f.media_type, f.size_bytes, f.sha256, f.storage_key
          from app.chats c
          join app.chat_attachments f on f.organization_id = c.organization_id and f.chat_id = c.id
          where i.item ->> 'kind' = 'attachment' and c.organization_id = p_organization_id
            and c.id = (i.item ->> 'chatId')::uuid and c.removed_at is null
            and f.id = (i.item ->> 'attachmentId')::uuid
          for key share of f skip locked
      ) a on true
      left join lateral (
        -- A document that the last audit could not read counts as missing; that of another scope is no substitute.
        select f.size_bytes, case when not p.unreadable ? f.path then f.sha256 end as sha256,
            case when not p.unreadable ? f.path then f.storage_key end as storage_key
          from app.agent_profiles g
          join app.context_publications p on p.organization_id = g.organization_id
            and (g.department is null or p.scope in ('organization', g.department))
          join app.context_documents f on f.organization_id = p.organization_id and f.scope = p.scope
            and f.revision = p.revision
          where i.item ->> 'kind' = 'context_file' and g.organization_id = p_organization_id
            and g.id = t.owner_agent_profile_id and f.path = i.item ->> 'path'
          order by p.scope is distinct from g.department,
            array_position(array['organization', 'engineering', 'growth', 'support'], p.scope)
          limit 1
      ) d on true
      order by i.place
    on conflict (organization_id, run_id, path) do nothing
$$;

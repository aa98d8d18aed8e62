-- Inbox item (none) → open: a question or notification of an agent about an open task (docs/interface.md 2.11). A blocking
-- question blocks the task: a running one when its run ends, any other immediately.
-- p_item: {kind, title, body, options, allowFreeText, blocking}, validated in shape.
-- Locks: root → run request of a capability → … as task_settle.
-- Codes: 401 agent_unauthorized, 404 organization_not_found | task_not_found, 409 state_conflict.
create or replace function app.human_inbox_item_create(
  p_organization_id uuid, p_task_ref text, p_item jsonb, p_actor jsonb)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_task_id uuid;
  v_actor jsonb;
  t app.tasks;
  i app.human_inbox_items;
begin
  v_task_id := app.task_find(p_organization_id, p_task_ref);
  perform app.task_roots_lock(p_organization_id, array[v_task_id], true);
  v_actor := app.actor_require(p_organization_id, p_actor, v_task_id);
  select * into t from app.tasks where organization_id = p_organization_id and id = v_task_id;
  if not found then
    perform app.fail(404, 'task_not_found', 'Task not found');
  end if;
  if t.phase = 'closed' then
    perform app.fail(409, 'state_conflict', format('The task is %s', t.status));
  end if;
  if (select count(*) from app.human_inbox_items
        where organization_id = p_organization_id and task_id = t.id and status = 'open') >= 100 then
    perform app.fail(409, 'state_conflict', 'A task has at most 100 open items in the inbox');
  end if;
  insert into app.human_inbox_items (organization_id, kind, purpose, blocking, title, body, options, allow_free_text,
      task_id, run_id, chat_id)
    values (p_organization_id, p_item ->> 'kind', 'agent', coalesce((p_item ->> 'blocking')::boolean, false),
      p_item ->> 'title', coalesce(p_item ->> 'body', ''), coalesce(p_item -> 'options', '[]'),
      coalesce((p_item ->> 'allowFreeText')::boolean, true), t.id, (v_actor ->> 'runId')::uuid,
      (v_actor ->> 'chatId')::uuid)
    returning * into i;
  if i.blocking then
    perform app.task_settle(p_organization_id, t.id);
  end if;
  return jsonb_build_object('item', to_jsonb(i));
end
$$;

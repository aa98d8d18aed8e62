-- Question open → responded (docs/interface.md 3.7), with the continuation that the answer chooses. Repair: try_again (the task
-- is settled), accept (a person completes it), cancel. Budget: raise (by one allowance), cancel. Prerequisite: retry, remove,
-- wait (human_inbox_prerequisite), cancel. A question of an agent: the task is settled if it waited for the answer. What
-- answers try_again or an agent's question stays in tasks.answers for the next run. Of two concurrent responses the second
-- finds the question responded.
-- Locks: roots → inbox item → … as the continuation.
-- Codes: 400 validation_failed (another kind, not an option), 404 organization_not_found | human_inbox_item_not_found, 409
-- human_inbox_item_not_open | state_conflict (a prerequisite that cannot be retried).
create or replace function app.human_inbox_respond(
  p_organization_id uuid, p_inbox_item_id uuid, p_response text, p_note text)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_task_ids uuid[];
  i app.human_inbox_items;
begin
  -- An item never changes its task, so the roots can be locked first.
  v_task_ids := app.human_inbox_item_tasks(p_organization_id, p_inbox_item_id);
  perform app.task_roots_lock(p_organization_id, v_task_ids, true);
  if not app.human_inbox_item_tasks(p_organization_id, p_inbox_item_id) <@ v_task_ids then
    raise exception using errcode = '40001', message = 'the hierarchies to lock changed meanwhile';
  end if;
  i := app.human_inbox_item_lock(p_organization_id, p_inbox_item_id);
  if i.status <> 'open' then
    perform app.fail(409, 'human_inbox_item_not_open', format('The item is %s', i.status));
  end if;
  if i.kind <> 'question' then
    perform app.fail(400, 'validation_failed', 'Only questions are responded to',
      app.issue('inboxItemId', 'not_a_question', case i.kind when 'notification' then 'is a notification: acknowledge it'
        else 'is decided at its action' end));
  end if;
  if (i.purpose in ('repair', 'budget', 'prerequisite') or not i.allow_free_text) and not i.options ? p_response then
    perform app.fail(400, 'validation_failed', 'The response is none of the options',
      app.issue('response', 'not_an_option', format('must be one of %s', i.options)));
  end if;
  update app.human_inbox_items
    set status = 'responded', response = p_response, note = p_note, responded_at = clock_timestamp(),
      updated_at = clock_timestamp()
    where organization_id = p_organization_id and id = i.id
    returning * into i;

  if i.purpose in ('repair', 'budget', 'prerequisite') and p_response = 'cancel' then
    perform app.task_cancel(p_organization_id, i.task_id::text, '{"kind": "owner"}');
  elsif i.purpose = 'prerequisite' then
    perform app.human_inbox_prerequisite(i);
  elsif i.purpose = 'budget' then
    perform app.task_budget_raise(p_organization_id, i.task_id);
  elsif i.purpose = 'repair' and p_response = 'accept' then
    perform app.task_accept(i);
  else
    update app.tasks
      set answers = answers || jsonb_strip_nulls(jsonb_build_object('inboxItemId', i.id, 'purpose', i.purpose,
        'title', i.title, 'question', i.body, 'response', i.response, 'note', i.note,
        'respondedAt', to_char(i.responded_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')))
      where organization_id = p_organization_id and id = i.task_id;
    perform app.task_settle(p_organization_id, i.task_id);
  end if;
  return jsonb_build_object('item', to_jsonb(i));
end
$$;

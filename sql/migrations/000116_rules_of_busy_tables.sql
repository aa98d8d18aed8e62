-- Postgres parses the checks of a table anew for every statement that writes to it: 50 to 100 µs of each of the dozen writes
-- of a run, a seventh of all its processor time. The rules of the busiest tables are one function each, which a connection
-- compiles once. A broken rule is named in the error as the constraint that it was. "not r.status in (…)": which values a
-- column has is looked up there by others.
-- Whoever changes such a function adds the constraint anew, so that what is there is checked.
set local role runner_owner;

create function app.rule_refuse(p_table text, p_rule text) returns void
  language plpgsql immutable
  set search_path = pg_catalog, pg_temp
as $$
begin
  raise exception using errcode = 'check_violation', schema = 'app', table = p_table, constraint = p_rule,
    message = format('new row for relation "%s" violates check constraint "%s"', p_table, p_rule);
end
$$;

-- As for app.uuid_v7: setting the search path would take as long as the rest. They are called where it is set.
create function app.tasks_check(r app.tasks) returns boolean
  language plpgsql immutable
as $$
declare
  v_broken constant text := case
    when not r.identifier_scope in ('T', 'I') then 'tasks_identifier_scope_check'
    when not r.kind in ('task', 'initiative') then 'tasks_kind_check'
    when not r.phase in ('plan', 'execute', 'verify', 'closed') then 'tasks_phase_check'
    when not r.status in ('pending', 'blocked', 'running', 'waiting', 'completed', 'failed', 'cancelled')
      then 'tasks_status_check'
    when not ((r.status = 'blocked') = (r.blockers <> '[]')) then 'tasks_blocked_when_blockers_check'
    when not jsonb_typeof(r.blockers) = 'array' then 'tasks_blockers_check'
    when not ((r.phase = 'closed') = (r.status in ('completed', 'failed', 'cancelled'))) then 'tasks_closed_when_over_check'
    when not ((r.status = 'completed') = (r.completed_at is not null)) then 'tasks_completed_at_when_completed_check'
    when not (r.version >= 1 and r.graph_revision >= 1 and r.agent_run_count >= 0 and r.replan_count >= 0
      and r.completion_revision >= 0 and r.consumed_agent_run_count >= r.agent_run_count) then 'tasks_counters_check'
    when not length(r.dedupe_key) between 1 and 200 then 'tasks_dedupe_key_check'
    when not (r.depth >= 0 and (r.depth = 0) = (r.parent_id is null)) then 'tasks_depth_check'
    when not (r.failure_origin_id is null or r.status in ('failed', 'cancelled')) then 'tasks_failure_origin_when_over_check'
    when not (r.status <> 'failed' or r.failure_origin_id is not null) then 'tasks_origin_when_failed_check'
    when not (r.phase <> 'plan' or r.kind = 'initiative') then 'tasks_plan_of_initiative_check'
    when not (r.replan is null or r.kind = 'initiative') then 'tasks_replan_of_initiative_check'
    when not ((r.parent_id is null) = (r.root_task_id = r.id)) then 'tasks_root_when_no_parent_check'
    when not ((r.status = 'running') = (r.active_run_id is not null)) then 'tasks_running_when_active_run_check'
    when not ((r.kind = 'task') = (r.identifier_scope = 'T')) then 'tasks_scope_of_kind_check'
    when not jsonb_typeof(r.spec) = 'object' then 'tasks_spec_check'
    when not (r.spent_cost_minor_units >= 0 and r.spent_tokens >= 0 and r.cost_known_run_count >= 0) then 'tasks_spend_check'
    when not (not r.spend_limited or r.parent_id is null) then 'tasks_spend_limited_when_root_check'
    when not length(r.title) between 1 and 200 then 'tasks_title_check'
    when not (r.phase <> 'verify' or r.verification is not null) then 'tasks_verification_when_verify_check'
    when not ((r.status = 'waiting') = (r.waiting_until is not null)) then 'tasks_waiting_when_until_check'
  end;
begin
  if v_broken is not null then
    perform app.rule_refuse('tasks', v_broken);
  end if;
  return true;
end
$$;

create function app.run_requests_check(r app.run_requests) returns boolean
  language plpgsql immutable
as $$
declare
  v_broken constant text := case
    when not r.kind in ('task', 'chat') then 'run_requests_kind_check'
    when not r.mode in ('plan', 'execute', 'verify') then 'run_requests_mode_check'
    when not r.state in ('queued', 'published', 'leased', 'started', 'finished', 'cancelled')
      then 'run_requests_state_check'
    when not (r.cancel_requested_at is null or r.state in ('started', 'cancelled'))
      then 'run_requests_cancel_requested_when_started_check'
    when not ((r.kind = 'chat') = (r.message_id is not null) and (r.chat_id is null) = (r.message_id is null))
      then 'run_requests_chat_when_chat_check'
    when not (r.attempt >= 0 and r.fence >= 0) then 'run_requests_counters_check'
    when not ((r.state in ('finished', 'cancelled')) = (r.finished_at is not null))
      then 'run_requests_finished_at_when_over_check'
    when not ((r.state in ('leased', 'started')) = (r.lease_expires_at is not null)
      and (r.lease_expires_at is null) = (r.lease_secret_hash is null)) then 'run_requests_lease_when_held_check'
    when not (not r.parked or r.state = 'queued') then 'run_requests_parked_when_queued_check'
    when not (r.state <> 'published' or r.published_at is not null) then 'run_requests_published_at_check'
    when not (r.state <> 'started' or r.run_id is not null and r.execution_token_hash is not null)
      then 'run_requests_run_when_started_check'
    when not ((r.kind = 'task') = (r.task_id is not null)) then 'run_requests_task_when_task_check'
  end;
begin
  if v_broken is not null then
    perform app.rule_refuse('run_requests', v_broken);
  end if;
  return true;
end
$$;

create function app.runs_check(r app.runs) returns boolean
  language plpgsql immutable
as $$
declare
  v_broken constant text := case
    when not r.kind in ('task', 'chat') then 'runs_kind_check'
    when not r.log_state in ('not_recorded', 'recording', 'complete', 'truncated') then 'runs_log_state_check'
    when not r.mode in ('plan', 'execute', 'verify') then 'runs_mode_check'
    when not r.status in ('starting', 'running', 'succeeded', 'failed', 'cancelled', 'expired') then 'runs_status_check'
    when not ((r.kind = 'chat') = (r.message_id is not null) and (r.chat_id is null) = (r.message_id is null))
      then 'runs_chat_when_chat_check'
    when not (r.attempt >= 1 and r.log_count >= 0 and r.input_tokens >= 0 and r.output_tokens >= 0 and r.tool_calls >= 0
      and r.cost_minor_units >= 0) then 'runs_counters_check'
    when not ((r.finish_call is null) = (r.finish_hash is null) and r.finish_call in ('complete', 'fail'))
      then 'runs_finish_check'
    when not ((r.status in ('starting', 'running')) = (r.finished_at is null)) then 'runs_finished_at_when_over_check'
    when not ((r.kind = 'task') = (r.task_id is not null)) then 'runs_task_when_task_check'
  end;
begin
  if v_broken is not null then
    perform app.rule_refuse('runs', v_broken);
  end if;
  return true;
end
$$;

create function app.run_logs_check(r app.run_logs) returns boolean
  language plpgsql immutable
as $$
declare
  v_broken constant text := case
    when not r.category in ('planning', 'execution', 'tool', 'verification', 'sync', 'system')
      then 'run_logs_category_check'
    when not r.status in ('running', 'completed', 'failed', 'skipped') then 'run_logs_status_check'
    when not length(r.detail) <= 2000 then 'run_logs_detail_check'
    when not length(r.label) between 1 and 200 then 'run_logs_label_check'
    when not r.sequence >= 0 then 'run_logs_sequence_check'
  end;
begin
  if v_broken is not null then
    perform app.rule_refuse('run_logs', v_broken);
  end if;
  return true;
end
$$;

create function app.messages_check(r app.messages) returns boolean
  language plpgsql immutable
as $$
declare
  v_broken constant text := case
    when not r.role in ('user', 'assistant') then 'messages_role_check'
    when not r.status in ('pending', 'complete', 'cancelling', 'cancelled', 'failed') then 'messages_status_check'
    when not (r.role = 'assistant' or r.status = 'complete') then 'messages_complete_when_user_check'
    when not ((r.status in ('complete', 'cancelled', 'failed')) = (r.completed_at is not null))
      then 'messages_completed_at_when_final_check'
    when not ((r.status = 'failed') = (r.error is not null)) then 'messages_error_when_failed_check'
    when not jsonb_typeof(r.parts) = 'array' then 'messages_parts_check'
    when not ((r.role = 'assistant') = (r.reply_to_message_id is not null)) then 'messages_reply_when_assistant_check'
    when not r.revision >= 1 then 'messages_revision_check'
    when not ((r.completed_at is null) = (r.search_text is null)) then 'messages_search_text_when_final_check'
  end;
begin
  if v_broken is not null then
    perform app.rule_refuse('messages', v_broken);
  end if;
  return true;
end
$$;

do $$
declare
  v_name text;
begin
  foreach v_name in array array['rule_refuse(text, text)', 'tasks_check(app.tasks)', 'run_requests_check(app.run_requests)',
      'runs_check(app.runs)', 'run_logs_check(app.run_logs)', 'messages_check(app.messages)'] loop
    execute format('revoke all on function app.%s from public', v_name);
    execute format('grant execute on function app.%s to runner_scoped, runner_global', v_name);
  end loop;
end
$$;

alter table app.tasks
  drop constraint tasks_blocked_when_blockers_check,
  drop constraint tasks_blockers_check,
  drop constraint tasks_closed_when_over_check,
  drop constraint tasks_completed_at_when_completed_check,
  drop constraint tasks_counters_check,
  drop constraint tasks_dedupe_key_check,
  drop constraint tasks_depth_check,
  drop constraint tasks_failure_origin_when_over_check,
  drop constraint tasks_identifier_scope_check,
  drop constraint tasks_kind_check,
  drop constraint tasks_origin_when_failed_check,
  drop constraint tasks_phase_check,
  drop constraint tasks_plan_of_initiative_check,
  drop constraint tasks_replan_of_initiative_check,
  drop constraint tasks_root_when_no_parent_check,
  drop constraint tasks_running_when_active_run_check,
  drop constraint tasks_scope_of_kind_check,
  drop constraint tasks_spec_check,
  drop constraint tasks_spend_check,
  drop constraint tasks_spend_limited_when_root_check,
  drop constraint tasks_status_check,
  drop constraint tasks_title_check,
  drop constraint tasks_verification_when_verify_check,
  drop constraint tasks_waiting_when_until_check,
  add constraint tasks_row_check check (app.tasks_check(tasks));

alter table app.run_requests
  drop constraint run_requests_cancel_requested_when_started_check,
  drop constraint run_requests_chat_when_chat_check,
  drop constraint run_requests_counters_check,
  drop constraint run_requests_finished_at_when_over_check,
  drop constraint run_requests_kind_check,
  drop constraint run_requests_lease_when_held_check,
  drop constraint run_requests_mode_check,
  drop constraint run_requests_parked_when_queued_check,
  drop constraint run_requests_published_at_check,
  drop constraint run_requests_run_when_started_check,
  drop constraint run_requests_state_check,
  drop constraint run_requests_task_when_task_check,
  add constraint run_requests_row_check check (app.run_requests_check(run_requests));

alter table app.runs
  drop constraint runs_chat_when_chat_check,
  drop constraint runs_counters_check,
  drop constraint runs_finish_check,
  drop constraint runs_finished_at_when_over_check,
  drop constraint runs_kind_check,
  drop constraint runs_log_state_check,
  drop constraint runs_mode_check,
  drop constraint runs_status_check,
  drop constraint runs_task_when_task_check,
  add constraint runs_row_check check (app.runs_check(runs));

alter table app.run_logs
  drop constraint run_logs_category_check,
  drop constraint run_logs_detail_check,
  drop constraint run_logs_label_check,
  drop constraint run_logs_sequence_check,
  drop constraint run_logs_status_check,
  add constraint run_logs_row_check check (app.run_logs_check(run_logs));

-- Each revision of an answer that is being written is an update.
alter table app.messages
  drop constraint messages_complete_when_user_check,
  drop constraint messages_completed_at_when_final_check,
  drop constraint messages_error_when_failed_check,
  drop constraint messages_parts_check,
  drop constraint messages_reply_when_assistant_check,
  drop constraint messages_revision_check,
  drop constraint messages_role_check,
  drop constraint messages_search_text_when_final_check,
  drop constraint messages_status_check,
  add constraint messages_row_check check (app.messages_check(messages));

-- The same for the condition of a trigger: which changes of state change a counter of dispatch. What the pull does it counts
-- itself.
create function app.run_requests_counts(p_old text, p_new text) returns boolean
  language plpgsql immutable
as $$
begin
  return p_old <> p_new and not (p_old = 'published' and p_new = 'leased')
    and ((p_old = 'published') <> (p_new = 'published')
      or (p_old in ('leased', 'started')) <> (p_new in ('leased', 'started')));
end
$$;
revoke all on function app.run_requests_counts from public;
grant execute on function app.run_requests_counts to runner_scoped, runner_global;

drop trigger run_requests_count_update on app.run_requests;
create constraint trigger run_requests_count_update after update of state on app.run_requests
  deferrable initially deferred for each row
  when (app.run_requests_counts(old.state, new.state)) execute function app.run_requests_count();

reset role;
grant create on schema app to runner_scoped;
set local role runner_scoped;
-- As it was, with its tenant set by an expression: a statement of its own for that takes three times as long.
create or replace function app.run_requests_count() returns trigger
  language plpgsql security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  v_tenant constant text := set_config('app.organization_id', new.organization_id::text, true);
  v_ready integer := (new.state = 'published')::integer;
  v_held integer := (new.state in ('leased', 'started'))::integer;
  v_was_open boolean;
  v_is_open boolean;
begin
  if tg_op = 'UPDATE' then
    v_ready := v_ready - (old.state = 'published')::integer;
    v_held := v_held - (old.state in ('leased', 'started'))::integer;
  end if;
  -- The dispatch row's lock guards its lanes.
  if v_held = 0 then
    perform 1 from app.dispatch
      where organization_id = new.organization_id and kind = new.kind
      for no key update;
  else
    update app.dispatch set held = held + v_held
      where organization_id = new.organization_id and kind = new.kind;
  end if;
  update app.dispatch_lanes
    set ready = ready + v_ready, held = held + v_held
    where organization_id = new.organization_id and kind = new.kind and agent_profile_id = new.agent_profile_id
    returning open, ready - v_ready > 0 and held - v_held < capacity into v_is_open, v_was_open;
  if not found then
    raise exception 'no dispatch lane of kind % for profile %', new.kind, new.agent_profile_id;
  end if;
  if v_was_open <> v_is_open then
    update app.dispatch
      set open_lanes = open_lanes + v_is_open::integer - v_was_open::integer
      where organization_id = new.organization_id and kind = new.kind;
  end if;
  return null;
end
$$;

reset role;
revoke create on schema app from runner_scoped;

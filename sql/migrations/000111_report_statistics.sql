-- As for texts (000097): what EXPLAIN estimates, it tells of all tenants. These are amounts and words that no plan depends on: they
-- are summed up, sorted by an index, or asked for beside columns that decide more.
set local role runner_owner;
alter table app.runs alter column input_tokens set statistics 0, alter column output_tokens set statistics 0,
  alter column tool_calls set statistics 0, alter column cost_minor_units set statistics 0, alter column log_count set statistics 0;
alter table app.tasks alter column priority set statistics 0, alter column agent_run_count set statistics 0,
  alter column consumed_agent_run_count set statistics 0, alter column replan_count set statistics 0;
alter table app.run_requests alter column priority set statistics 0;
alter table app.chat_attachments alter column size_bytes set statistics 0;
alter table app.context_documents alter column size_bytes set statistics 0;
alter table app.onboardings alter column generation set statistics 0, alter column research_attempts set statistics 0;
alter table app.audit_entries alter column action set statistics 0, alter column subject_kind set statistics 0,
  alter column code set statistics 0;
reset role;

-- ANALYZE leaves such a column out, and what it had sampled where it was. Only superusers may take that away; without one it grows old.
do $$
begin
  if (select rolsuper from pg_roles where rolname = current_user) then
    delete from pg_statistic s using pg_attribute a, pg_class c
      where a.attrelid = s.starelid and a.attnum = s.staattnum and a.attstattarget = 0
        and c.oid = a.attrelid and c.relnamespace = 'app'::regnamespace;
  end if;
end
$$;

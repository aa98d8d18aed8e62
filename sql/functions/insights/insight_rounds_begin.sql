-- A source is collected anew, from the beginning: its cursors are due in the rhythm of its dataset, what it had staged is dropped, and
-- nothing counts as known any more. What is published stays. p_modes: [{mode, dueInSeconds}]. The caller has locked the source.
create or replace function app.insight_rounds_begin(p_organization_id uuid, p_source_id uuid, p_modes jsonb)
  returns void
  language plpgsql
as $$
begin
  delete from app.insight_cursors where organization_id = p_organization_id and source_id = p_source_id;
  insert into app.insight_cursors (organization_id, source_id, mode, due_at)
    select p_organization_id, p_source_id, m.mode, clock_timestamp() + make_interval(secs => m."dueInSeconds")
      from jsonb_to_recordset(p_modes) m(mode text, "dueInSeconds" double precision);
  update app.insight_segments set staged = false, retired_at = clock_timestamp()
    where organization_id = p_organization_id and source_id = p_source_id and staged;
  update app.insight_sources
    set coverage = '[]', failure_count = 0, last_error = null, updated_at = clock_timestamp()
    where organization_id = p_organization_id and id = p_source_id;
end
$$;

-- Removes invocations and files of an execution that ended a day ago, and uploads whose URL ended a day ago without being completed;
-- at most p_rows of each. First without p_forget: nothing changes, and the caller deletes the objects that it names; then with it, and
-- the rows go. So a crash in between loses nothing. What an action sends stays, under the action alone. What is not over yet is looked
-- at again a day after its end, or in a day.
-- Returns {rows, keys}; rows 0: there is nothing (any more). Locks: invocations, files. Codes: none.
create or replace function app.action_invocations_remove(p_organization_id uuid, p_run_id uuid, p_rows integer, p_forget boolean)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_now constant timestamptz := clock_timestamp();
  v_before constant timestamptz := v_now - interval '1 day';
  v_look_at timestamptz;
  v_is_over boolean;
  v_files tid[];
  v_invocations tid[];
  v_keys jsonb;
begin
  select coalesce(u.finished_at <= v_before, false), coalesce(u.finished_at, v_now) + interval '1 day'
    into v_is_over, v_look_at
    from app.runs u where u.organization_id = p_organization_id and u.id = p_run_id;
  if not found then
    return '{"rows": 0, "keys": []}';
  end if;
  v_files := array(
    select f.ctid from app.action_invocation_files f
      where f.organization_id = p_organization_id and f.run_id = p_run_id
        and (v_is_over or f.stored_at is null and f.upload_expires_at <= v_before)
      order by f.integration_id, f.invocation_id, f.id limit p_rows for update);
  v_invocations := array(
    select n.ctid from app.action_invocations n
      where n.organization_id = p_organization_id and n.run_id = p_run_id and v_is_over
      order by n.integration_id, n.invocation_id limit p_rows for update);
  select coalesce(jsonb_agg(k.key), '[]') into v_keys
    from (
      select unnest(array[f.upload_key, case when not exists (
            select from app.action_files a
              where a.organization_id = p_organization_id and a.storage_key = f.storage_key) then f.storage_key end]) as key
        from app.action_invocation_files f where f.ctid = any (v_files)
      union all
      select n.response_key from app.action_invocations n where n.ctid = any (v_invocations)) k
    where k.key is not null;
  if p_forget then
    delete from app.action_invocation_files where ctid = any (v_files) and organization_id = p_organization_id;
    delete from app.action_invocations where ctid = any (v_invocations) and organization_id = p_organization_id;
  elsif not v_is_over then
    update app.action_invocations set remove_at = v_look_at
      where organization_id = p_organization_id and run_id = p_run_id and remove_at <= v_now;
    update app.action_invocation_files set remove_at = v_look_at
      where organization_id = p_organization_id and run_id = p_run_id and remove_at <= v_now and not ctid = any (v_files);
  end if;
  return jsonb_build_object('rows', cardinality(v_files) + cardinality(v_invocations), 'keys', v_keys);
end
$$;

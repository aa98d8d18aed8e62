-- Removes invocations and files of an execution that ended a day ago, and uploads whose URL ended a day ago without being completed;
-- at most p_rows of each. First without p_removed: nothing changes, and the caller deletes the objects that it names; then with those
-- that it has deleted, and the rows go that name no other. So a crash in between loses nothing. Rows whose objects stay are put off, by
-- as long as they have been due: no more than a day, and until the next hour's job at least. What an action sends stays, under the action
-- alone. What is not over yet is looked at again a day after its end, or in a day.
-- Returns {rows, keys}; rows 0: nothing is due (any more). Locks: invocations, files. Codes: none.
create or replace function app.action_invocations_remove(
  p_organization_id uuid, p_run_id uuid, p_rows integer, p_removed text[] default null)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_now constant timestamptz := clock_timestamp();
  v_before constant timestamptz := v_now - interval '1 day';
  v_pause_least constant interval := interval '55 minutes';
  v_pause_most constant interval := interval '1 day';
  v_finished_at timestamptz;
  v_is_over boolean;
  v_files tid[];
  v_invocations tid[];
  v_held text[];
  v_keys jsonb;
begin
  select u.finished_at, coalesce(u.finished_at <= v_before, false) into v_finished_at, v_is_over
    from app.runs u where u.organization_id = p_organization_id and u.id = p_run_id;
  if not found then
    return '{"rows": 0, "keys": []}';
  end if;
  v_files := array(
    select f.ctid from app.action_invocation_files f
      where f.organization_id = p_organization_id and f.run_id = p_run_id and f.remove_at <= v_now
        and (v_is_over or f.stored_at is null and f.upload_expires_at <= v_before)
      order by f.integration_id, f.invocation_id, f.id limit p_rows for update);
  v_invocations := array(
    select n.ctid from app.action_invocations n
      where n.organization_id = p_organization_id and n.run_id = p_run_id and n.remove_at <= v_now and v_is_over
      order by n.integration_id, n.invocation_id limit p_rows for update);
  v_held := array(
    select a.storage_key from app.action_invocation_files f
      join app.action_files a on a.organization_id = p_organization_id and a.storage_key = f.storage_key
      where f.ctid = any (v_files));
  select coalesce(jsonb_agg(k.key), '[]') into v_keys
    from (
      select unnest(array[f.upload_key, case when f.storage_key <> all (v_held) then f.storage_key end]) as key
        from app.action_invocation_files f where f.ctid = any (v_files)
      union all
      select n.response_key from app.action_invocations n where n.ctid = any (v_invocations)) k
    where k.key is not null;
  if p_removed is not null then
    delete from app.action_invocation_files f
      where f.ctid = any (v_files) and f.organization_id = p_organization_id
        and array_remove(array[f.upload_key, case when f.storage_key <> all (v_held) then f.storage_key end], null) <@ p_removed;
    delete from app.action_invocations n
      where n.ctid = any (v_invocations) and n.organization_id = p_organization_id
        and (n.response_key is null or n.response_key = any (p_removed));
    update app.action_invocation_files f
      set remove_at = v_now
        + least(greatest(v_before - coalesce(v_finished_at, f.upload_expires_at), v_pause_least), v_pause_most)
      where f.ctid = any (v_files) and f.organization_id = p_organization_id;
    update app.action_invocations n
      set remove_at = v_now + least(greatest(v_before - v_finished_at, v_pause_least), v_pause_most)
      where n.ctid = any (v_invocations) and n.organization_id = p_organization_id;
  elsif not v_is_over then
    update app.action_invocations set remove_at = coalesce(v_finished_at, v_now) + interval '1 day'
      where organization_id = p_organization_id and run_id = p_run_id and remove_at <= v_now;
    update app.action_invocation_files set remove_at = coalesce(v_finished_at, v_now) + interval '1 day'
      where organization_id = p_organization_id and run_id = p_run_id and remove_at <= v_now and not ctid = any (v_files);
  end if;
  return jsonb_build_object('rows', cardinality(v_files) + cardinality(v_invocations), 'keys', v_keys);
end
$$;

-- The settings after a merge patch; a removed setting gets its default. Codes: 400 validation_failed, with an issue for each
-- pinned task that does not exist.
create or replace function app.chat_settings(p_organization_id uuid, p_settings jsonb, p_patch jsonb)
  returns jsonb
  language plpgsql
as $$
declare
  v_settings jsonb := app.merge_patch('{"pinnedTaskIds": []}', nullif(app.merge_patch(p_settings, p_patch), 'null'));
  v_issues jsonb;
begin
  select jsonb_agg(app.issue(format('settings.pinnedTaskIds.%s', i.place - 1), 'unknown_task',
      'names no task of this organization') -> 0 order by i.place)
    into v_issues
    from jsonb_array_elements_text(v_settings -> 'pinnedTaskIds') with ordinality i(id, place)
    where not exists (select 1 from app.tasks t where t.organization_id = p_organization_id and t.id = i.id::uuid);
  if v_issues is not null then
    perform app.fail(400, 'validation_failed', 'A pinned task is not one of this organization', v_issues);
  end if;
  return v_settings;
end
$$;

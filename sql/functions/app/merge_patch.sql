-- JSON merge patch (RFC 7396): null removes, objects are merged, everything else is replaced.
create or replace function app.merge_patch(p_target jsonb, p_patch jsonb)
  returns jsonb
  language plpgsql immutable
as $$
declare
  v_result jsonb := case when jsonb_typeof(p_target) = 'object' then p_target else '{}'::jsonb end;
  v_key text;
  v_value jsonb;
begin
  if p_patch is null then
    return p_target;
  end if;
  if jsonb_typeof(p_patch) <> 'object' then
    return p_patch;
  end if;
  for v_key, v_value in select key, value from jsonb_each(p_patch) loop
    if jsonb_typeof(v_value) = 'null' then
      v_result := v_result - v_key;
    else
      v_result := jsonb_set(v_result, array[v_key], app.merge_patch(v_result -> v_key, v_value));
    end if;
  end loop;
  return v_result;
end
$$;
